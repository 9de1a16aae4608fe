;; A trigger: does anybody shout? It looks for "!!" anywhere in the question.
;;
;; `cra` calls `alloc` with the length of the question, writes the question to the place that comes
;; back, and calls `answer` with that place and the length. Question and answer are JSON in UTF-8.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "true")
  (data (i32.const 8) "false")

  ;; The question goes behind the first page, into as many new pages as it needs.
  (func (export "alloc") (param $length i32) (result i32)
    (drop (memory.grow (i32.add (i32.shr_u (local.get $length) (i32.const 16)) (i32.const 1))))
    (i32.const 65536))

  ;; The answer: where it stands in the upper half, how many bytes it has in the lower half.
  (func (export "answer") (param $at i32) (param $length i32) (result i64)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $quiet
      (loop $next
        (br_if $quiet (i32.ge_u (local.get $at) (local.get $end)))
        (if (i32.eq (i32.load16_u (local.get $at)) (i32.const 0x2121))
          (then (return (i64.const 0x00000000_00000004)))) ;; "true"
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (i64.const 0x00000008_00000005))) ;; "false"

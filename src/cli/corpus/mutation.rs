//! Seeded mutations: the same seed gives the same mutations on every machine.

use serde_json::{Map, Value, json};

/// Deterministic pseudo-random generator (`SplitMix64`).
pub(super) struct MutationRng(u64);

impl MutationRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap().max(1);
        usize::try_from(self.roll() % end).unwrap()
    }
}

/// Tokens that often break decoders.
const TOKENS: [&[u8]; 30] = [
    b"\"",
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\n- ",
    b"- ",
    b": {",
    b"&a ",
    b"*a",
    b"!!str ",
    b"<<: ",
    b"---\n",
    b"%YAML 1.1\n",
    b"#",
    b"|",
    b">-\n",
    b"null",
    b"-1",
    b"0x10",
    b"1e999",
    b"99999999999999999999",
    b"\0",
    b"\xff",
    b"\xe2\x80\xae",
    b"\\u0000",
];

/// A mutation of one of these seeds, perhaps with a piece of another.
pub(super) fn mutated(seeds: &[&[u8]], dice: &mut MutationRng) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].to_vec();
    for _ in 0..=dice.below(4) {
        let start = dice.below(bytes.len() + 1);
        let end = (start + dice.below(40)).min(bytes.len());
        match dice.below(7) {
            0 => drop(bytes.drain(start..end)),
            1 => bytes.truncate(start),
            2 => drop(bytes.splice(start..start, TOKENS[dice.below(TOKENS.len())].to_vec())),
            3 => drop(bytes.splice(start..end, TOKENS[dice.below(TOKENS.len())].to_vec())),
            4 => {
                let piece = bytes[start..end].to_vec();
                let place = dice.below(bytes.len() + 1);
                drop(bytes.splice(place..place, piece));
            }
            5 => {
                let other = seeds[dice.below(seeds.len())];
                let from = dice.below(other.len());
                let to = (from + dice.below(80)).min(other.len());
                drop(bytes.splice(start..end, other[from..to].to_vec()));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(start) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    bytes
}

/// A value with one element replaced, renamed or removed.
pub(super) fn mutate_json(value: &Value, dice: &mut MutationRng) -> Value {
    let deeper = dice.below(4) != 0;
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let place = dice.below(fields.len());
            let (name, field) = fields.iter().nth(place).unwrap();
            let mut fields = fields.clone();
            match dice.below(8) {
                0 => drop(fields.remove(name)),
                1 => {
                    let moved = fields.remove(name).unwrap();
                    fields.insert(format!("{name}_"), moved);
                }
                _ => drop(fields.insert(name.clone(), mutate_json(field, dice))),
            }
            Value::Object(fields)
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let place = dice.below(items.len());
            let mut items = items.clone();
            match dice.below(6) {
                0 => drop(items.remove(place)),
                1 => items.push(items[place].clone()),
                _ => items[place] = mutate_json(&items[place].clone(), dice),
            }
            Value::Array(items)
        }
        _ => odd_value(dice),
    }
}

fn odd_value(dice: &mut MutationRng) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("s-1"),
        json!("x".repeat(300)),
        json!("\u{202e}\u{0}"),
        json!("9999-12-31T23:59:59.999999Z"),
        json!("0".repeat(64)),
        json!([]),
        Value::Object(Map::new()),
    ];
    values[dice.below(values.len())].clone()
}

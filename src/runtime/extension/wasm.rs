//! Extensions that are WebAssembly modules: without imports, with limited work and memory.
//!
//! A module exports its memory as `memory`, `alloc(length) -> pointer`, and `answer(pointer, length) ->
//! i64`, whose upper half is the address of the answer and whose lower half is its length. Question and
//! answer are JSON in UTF-8. A module can import nothing. Every question gets a new instance, so that a
//! module carries nothing over from one agent to the next.

use std::sync::Arc;

use serde_json::Value;
use wasmi::{
    Config, Engine, Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
};

use super::{Client, Extension};
use crate::base::clock::Boxed;
use crate::base::json;
use crate::base::limits::MAX_EXTENSION_BYTES;
use crate::engine::extension::ExtensionCall;

/// Limits of a module for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasmLimits {
    /// Work: roughly one unit per instruction.
    pub fuel: u64,
    /// Memory in bytes.
    pub memory_bytes: usize,
}

/// A module that is ready to be called.
#[derive(Clone)]
pub struct WasmExtension(Arc<LoadedModule>);

struct LoadedModule {
    engine: Engine,
    module: Module,
    limits: WasmLimits,
}

/// Most entries of a module's tables: each one takes memory outside the module's own.
const TABLE_ELEMENTS: usize = 10_000;

impl WasmExtension {
    /// Loads a module: it must be valid, import nothing, and export the required functions.
    ///
    /// # Errors
    /// Fails with a message when the module does not fit.
    pub fn new(bytes: &[u8], limits: WasmLimits) -> Result<Self, String> {
        let mut config = Config::default();
        config.consume_fuel(true).ignore_custom_sections(true);
        let engine = Engine::new(&config);
        if !bytes.starts_with(b"\0asm") {
            return Err("not a WebAssembly module".to_owned());
        }
        let module = Module::new(&engine, bytes).map_err(|error| one_line(&error))?;
        if let Some(import) = module.imports().next() {
            let (from, name) = (import.module(), import.name());
            return Err(format!(
                "it imports `{from}.{name}`, but imports are not allowed"
            ));
        }
        for wanted in ["memory", "alloc", "answer"] {
            if module.get_export(wanted).is_none() {
                return Err(format!("it does not export `{wanted}`"));
            }
        }
        Ok(Self(Arc::new(LoadedModule {
            engine,
            module,
            limits,
        })))
    }

    /// Sends a question, and waits for the answer.
    pub(crate) fn ask(&self, question: &str) -> Result<Value, String> {
        let loaded = &self.0;
        let mut store = Store::new(&loaded.engine, limits(loaded.limits));
        store.limiter(|limits| limits);
        let fueled = store.set_fuel(loaded.limits.fuel);
        fueled.map_err(|error| one_line(&error))?;
        let answer = answer(loaded, &mut store, question).map_err(|error| one_line(&error))?;
        let text = answer.ok_or("its answer is outside its memory, or too long")?;
        json::read(&text).map_err(|error| format!("its answer is {error}"))
    }
}

fn limits(limits: WasmLimits) -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(limits.memory_bytes)
        .table_elements(TABLE_ELEMENTS)
        .instances(1)
        .tables(1)
        .memories(1)
        .trap_on_grow_failure(true)
        .build()
}

/// Returns the answer of a module; `None` if its address or length is outside its memory.
fn answer(
    loaded: &LoadedModule,
    store: &mut Store<StoreLimits>,
    question: &str,
) -> Result<Option<Vec<u8>>, wasmi::Error> {
    let linker = Linker::new(&loaded.engine);
    let instance = linker.instantiate_and_start(&mut *store, &loaded.module)?;
    let alloc = instance.get_typed_func::<i32, i32>(&*store, "alloc")?;
    let answer = instance.get_typed_func::<(i32, i32), i64>(&*store, "answer")?;
    let Some(memory) = instance.get_memory(&*store, "memory") else {
        return Ok(None);
    };
    let Ok(length) = i32::try_from(question.len()) else {
        return Ok(None);
    };
    let at = alloc.call(&mut *store, length)?;
    let start = usize::try_from(at.cast_unsigned()).unwrap_or(usize::MAX);
    if memory
        .write(&mut *store, start, question.as_bytes())
        .is_err()
    {
        return Ok(None);
    }
    let packed = answer.call(&mut *store, (at, length))?;
    Ok(read(store, memory, packed))
}

fn read(store: &Store<StoreLimits>, memory: Memory, packed: i64) -> Option<Vec<u8>> {
    let packed = packed.cast_unsigned();
    let start = usize::try_from(packed >> 32).ok()?;
    let length = usize::try_from(packed & u64::from(u32::MAX)).ok()?;
    if length > MAX_EXTENSION_BYTES {
        return None;
    }
    let bytes = memory.data(store).get(start..start.checked_add(length)?)?;
    Some(bytes.to_vec())
}

fn one_line(error: &wasmi::Error) -> String {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => "it used up its fuel".to_owned(),
        Some(TrapCode::GrowthOperationLimited) => "it exceeded its memory limit".to_owned(),
        Some(trap) => format!("it crashed: {trap}"),
        None => crate::base::text::one_line(&error.to_string()),
    }
}

impl Extension for WasmExtension {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        let (module, question) = (self.clone(), call.to_json().to_string());
        Box::pin(async move {
            // The module may run until its fuel is used up, so it must not block a shared thread.
            let asked = tokio::task::spawn_blocking(move || module.ask(&question)).await;
            asked.unwrap_or_else(|_| Err("it crashed".to_owned()))
        })
    }
}

#[cfg(test)]
mod tests;

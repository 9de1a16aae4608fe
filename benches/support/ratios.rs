//! Measurements of this run, read back from criterion's files, for tables of ratios.

use std::fs;
use std::path::{Path, PathBuf};

use criterion::Criterion;
use serde_json::Value;

/// Output folder of criterion. Emptied first: a ratio is of one run, never of two.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"))
}

/// Criterion, as short as the figures allow.
pub(crate) fn criterion() -> Criterion {
    // Not there in the first run.
    drop(fs::remove_dir_all(folder()));
    Criterion::default()
        .output_directory(&folder())
        .without_plots()
        .configure_from_args()
}

/// The fastest sample of a measurement of this run, in nanoseconds; `None` when it was filtered out.
///
/// What else a machine does only ever makes a sample slower, so the fastest says most.
pub(crate) fn nanoseconds(group: &str, parameter: impl std::fmt::Display) -> Option<f64> {
    let path = folder().join(group).join(parameter.to_string());
    let text = fs::read_to_string(path.join("new/sample.json")).ok()?;
    let sample: Value = serde_json::from_str(&text).ok()?;
    let numbers = |key: &str| {
        let list = sample[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_f64).collect::<Vec<_>>()
    };
    let per_run = numbers("times").into_iter().zip(numbers("iters"));
    per_run
        .map(|(time, runs)| time / runs)
        .min_by(f64::total_cmp)
}

/// A ratio of two measurements, as text.
pub(crate) fn ratio(one: Option<f64>, other: Option<f64>) -> String {
    match (one, other) {
        (Some(one), Some(other)) => format!("{:.2}", one / other),
        _ => "-".to_owned(),
    }
}

/// A time, as text.
pub(crate) fn time(nanoseconds: Option<f64>) -> String {
    match nanoseconds {
        None => "-".to_owned(),
        Some(ns) if ns < 1e3 => format!("{ns:.0} ns"),
        Some(ns) if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        Some(ns) => format!("{:.2} ms", ns / 1e6),
    }
}

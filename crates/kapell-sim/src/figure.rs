//! What benchmarks print.

use serde_json::json;

/// Prints one figure. A sample is one round's.
#[expect(clippy::print_stdout, reason = "this is what the program is for")]
pub fn figure(name: &str, samples: &[f64], unit: &str, at_most: Option<f64>) {
    println!("{}", json!({"name": name, "samples": samples, "unit": unit, "at_most": at_most}));
}

/// The same for what must not be below something.
#[expect(clippy::print_stdout, reason = "this is what the program is for")]
pub fn figure_at_least(name: &str, samples: &[f64], unit: &str, at_least: f64) {
    println!("{}", json!({"name": name, "samples": samples, "unit": unit, "at_least": at_least}));
}

/// The value below which this share of the samples lies.
pub fn share(samples: &[f64], permille: usize) -> f64 {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    samples.get((last * permille).div_ceil(1000)).copied().unwrap_or(f64::NAN)
}

pub fn median(samples: &[f64]) -> f64 {
    share(samples, 500)
}

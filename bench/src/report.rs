//! Measurements, as a table for people or as one JSON object per line.

use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Measurement {
    pub(crate) bench: &'static str,
    pub(crate) case: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// What was measured beside it, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
}

pub(crate) fn print(measurements: &[Measurement], json: bool) {
    if json {
        for measurement in measurements {
            println!("{}", serde_json::to_string(measurement).unwrap());
        }
        return;
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["case", "value", "unit", "ratio", "against"]);
    for m in measurements {
        let digits = if m.value >= 100.0 { 0 } else { 2 };
        let ratio = m.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let value = format!("{:.digits$}", m.value);
        table.add_row([&m.case, &value, m.unit, &ratio, m.against.as_deref().unwrap_or_default()]);
    }
    println!("{table}");
}

/// The value below which this share of the samples lies.
pub(crate) fn percentile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index below the length of a list in memory"
    )]
    let nth = ((samples.len() as f64 - 1.0) * share).round() as usize;
    samples.get(nth).copied().unwrap_or(f64::NAN)
}

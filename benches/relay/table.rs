//! Samples, and how they are shown.

use std::time::Duration;

/// What was measured of one stack, in one unit.
pub(crate) struct Row {
    pub(crate) name: String,
    samples: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            samples: Vec::new(),
        }
    }

    /// Adds a duration, in microseconds.
    pub(crate) fn time(&mut self, time: Duration) {
        self.samples.push(time.as_secs_f64() * 1e6);
    }

    /// Adds a rate, per second.
    pub(crate) fn rate(&mut self, count: usize, time: Duration) {
        self.samples.push(count as f64 / time.as_secs_f64());
    }

    /// Adds how much longer one took than the other, on average.
    pub(crate) fn difference(&mut self, times: &[(Duration, Duration)]) {
        let longer = |(one, other): &(Duration, Duration)| one.as_secs_f64() - other.as_secs_f64();
        let sum: f64 = times.iter().map(longer).sum();
        self.samples.push(sum / times.len() as f64 * 1e6);
    }

    pub(crate) fn median(&mut self) -> f64 {
        self.quantile(0.5)
    }

    /// Between which samples the median of all that could be measured lies, of
    /// twenty runs in nineteen.
    fn interval(&mut self) -> (f64, f64) {
        let half = 0.98 / (self.samples.len() as f64).sqrt();
        (
            self.quantile((0.5 - half).max(0.0)),
            self.quantile((0.5 + half).min(1.0)),
        )
    }

    fn quantile(&mut self, part: f64) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        let last = self.samples.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        self.samples.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// The rows of one bench, each with its median as a multiple of `floor`.
pub(crate) fn table(title: &str, unit: &str, floor: (&str, f64), rows: &mut [Row]) -> String {
    let (floor_name, floor) = floor;
    let mut text = format!(
        "{title} ({unit}; x is the median in multiples of {floor_name}, {floor:.1})\n\
         {:<34} {:>6} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
        "", "n", "p10", "median", "p90", "p99", "x"
    );
    for row in rows {
        let [p10, median, p90, p99] = [0.1, 0.5, 0.9, 0.99].map(|part| row.quantile(part));
        text.push_str(&format!(
            "  {:<32} {:>6} {p10:>9.1} {median:>9.1} {p90:>9.1} {p99:>9.1} {:>7.2}\n",
            row.name,
            row.samples.len(),
            median / floor
        ));
    }
    text
}

/// The rows of one bench without multiples, each with how well its median is
/// known.
pub(crate) fn differences(title: &str, unit: &str, rows: &mut [Row]) -> String {
    let mut text = format!(
        "{title} ({unit})\n{:<42} {:>6} {:>9} {:>9} {:>9}   {}\n",
        "", "n", "p10", "median", "p90", "95 % of medians"
    );
    for row in rows {
        let [p10, median, p90] = [0.1, 0.5, 0.9].map(|part| row.quantile(part));
        let (least, most) = row.interval();
        text.push_str(&format!(
            "  {:<40} {:>6} {p10:>9.1} {median:>9.1} {p90:>9.1}   {least:.1} to {most:.1}\n",
            row.name,
            row.samples.len(),
        ));
    }
    text
}

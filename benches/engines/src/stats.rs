#[derive(Debug, Default)]
pub struct Series(Vec<f64>);

impl Series {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    pub fn least(&self) -> f64 {
        self.0[0]
    }

    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    pub fn at(&self, permille: usize) -> f64 {
        self.0[(self.0.len() - 1) * permille / 1000]
    }

    /// Many values at once.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

use std::ops::Range;

/// Steps and what they wait for: `waves` after each other, each of `width` steps that
/// depend on every step of the wave before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) waves: usize,
    pub(crate) width: usize,
}

impl Shape {
    pub(crate) const fn independent(count: usize) -> Self {
        Self { waves: 1, width: count }
    }

    pub(crate) const fn chain(count: usize) -> Self {
        Self { waves: count, width: 1 }
    }

    pub(crate) const fn layers(waves: usize, width: usize) -> Self {
        Self { waves, width }
    }

    pub(crate) const fn steps(self) -> usize {
        self.waves * self.width
    }

    pub(crate) fn name(self) -> String {
        match (self.waves, self.width) {
            (1, 1) => "one step".to_owned(),
            (1, width) => format!("{} independent", grouped(width)),
            (waves, 1) => format!("chain of {}", grouped(waves)),
            (waves, width) => format!("{waves} layers of {width}"),
        }
    }

    /// The steps that `step` waits for.
    pub(crate) const fn before(self, step: usize) -> Range<usize> {
        let start = step / self.width * self.width;
        if start == 0 { 0..0 } else { start - self.width..start }
    }

    /// The steps that nothing waits for.
    pub(crate) const fn last(self) -> Range<usize> {
        self.steps() - self.width..self.steps()
    }
}

/// `10000` as `10,000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_waves_of_steps() {
        let layers = Shape::layers(3, 4);
        assert_eq!((layers.before(3), layers.before(4), layers.before(11)), (0..0, 0..4, 4..8));
        assert_eq!((layers.steps(), layers.last()), (12, 8..12));
        assert_eq!(Shape::chain(5).before(2), 1..2);
        assert_eq!(Shape::independent(5).before(4), 0..0);
        assert_eq!(Shape::independent(10_000).name(), "10,000 independent");
        assert_eq!(grouped(999), "999");
    }
}

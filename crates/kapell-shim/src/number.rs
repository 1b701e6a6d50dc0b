//! Numbers as text, without the machinery that formats anything.

/// A number in decimal.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Appends a number in decimal, with zeros in front up to `width`.
pub(crate) fn push(text: &mut Vec<u8>, number: u64, width: usize) {
    let start = text.len();
    let mut rest = number;
    while rest > 0 || text.len() - start < width.max(1) {
        text.push(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    text[start..].reverse();
}

//! Numbers that look drawn and are the same on every host and in every version.

/// A number that stands for a text. Written out, as what it gives may never change.
pub(super) fn of_text(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Another number for each `salt`.
pub(super) const fn mixed(number: u64, salt: u64) -> u64 {
    let mut bits = number ^ salt.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

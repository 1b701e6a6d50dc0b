//! Signatures of Standard Webhooks, from FIPS 180-4 and RFC 2104 and 4648 alone: nothing of the product's own is used.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BLOCK: usize = 64;

/// The first 32 bits of the fractional parts of the roots of the first primes: of the square, for the state, or of the cube.
fn constants<const N: usize>(root: impl Fn(u128) -> u128, shift: u32) -> [u32; N] {
    let mut primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    std::array::from_fn(|_| {
        let prime = primes.next().expect("there is no last one");
        let whole = root(prime << shift);
        u32::try_from(whole & 0xffff_ffff).expect("32 bits")
    })
}

/// The largest number whose power is at most `n`.
fn root(n: u128, power: u32) -> u128 {
    let (mut low, mut high) = (0u128, 1u128 << 40);
    while low < high {
        let middle = u128::midpoint(low, high + 1);
        if middle.checked_pow(power).is_some_and(|it| it <= n) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

fn sha256(message: &[u8]) -> [u8; 32] {
    let k: [u32; 64] = constants(|n| root(n, 3), 96);
    let mut state: [u32; 8] = constants(|n| root(n, 2), 64);
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % BLOCK != BLOCK - 8 {
        padded.push(0);
    }
    padded.extend(u64::try_from(message.len() * 8).expect("not that long").to_be_bytes());
    for block in padded.chunks_exact(BLOCK) {
        let mut w = [0u32; 64];
        for (at, word) in block.chunks_exact(4).enumerate() {
            w[at] = u32::from_be_bytes(word.try_into().expect("four bytes"));
        }
        for t in 16..64 {
            let (a, b) = (w[t - 15], w[t - 2]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            w[t] = w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1);
        }
        let mut v = state;
        for t in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
            let first =
                v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(k[t]).wrapping_add(w[t]);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            let second = s0.wrapping_add(majority);
            v = [
                first.wrapping_add(second),
                v[0],
                v[1],
                v[2],
                v[3].wrapping_add(first),
                v[4],
                v[5],
                v[6],
            ];
        }
        for (word, more) in state.iter_mut().zip(v) {
            *word = word.wrapping_add(more);
        }
    }
    let mut hash = [0; 32];
    for (four, word) in hash.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&sha256(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |with: u8| block.map(|byte| byte ^ with).to_vec();
    let inner = sha256(&[pad(0x36), message.to_vec()].concat());
    sha256(&[pad(0x5c), inner.to_vec()].concat())
}

pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * at) & 63).expect("six bits");
            text.push(if at <= three.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

/// What `webhook-signature` must be.
pub(super) fn signature(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> String {
    let message = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    format!("v1,{}", base64(&hmac(key, &message)))
}

#[test]
fn this_implementation_knows_the_vectors_of_the_standards() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hex(&sha256(b"abc")), abc);
    // RFC 4231, case 2.
    let mac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hex(&hmac(b"Jefe", b"what do ya want for nothing?")), mac);
    assert_eq!([base64(b"f"), base64(b"fo"), base64(b"foo")], ["Zg==", "Zm8=", "Zm9v"]);
}

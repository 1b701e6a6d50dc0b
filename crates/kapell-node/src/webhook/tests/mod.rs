mod hostile;
mod queue;
pub(crate) mod stage;

use kapell_core::secret::Secret;

use super::{BadKey, Signer};

/// The example of the standard's own documentation.
#[test]
fn signatures_are_those_of_standard_webhooks() {
    let signer = Signer::new(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
    let signature =
        signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn what_is_no_key_is_refused_without_being_repeated() {
    for text in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_short", "whsec_!!!!", "whsec_", ""] {
        assert_eq!(Signer::new(&Secret::new(text)).unwrap_err(), BadKey, "{text}");
    }
}

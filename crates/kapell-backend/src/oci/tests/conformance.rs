//! What every driver must do, done by this one.

use crate::oci::tests::lab::rig;
use crate::testing::conformance;

conformance!(rig);

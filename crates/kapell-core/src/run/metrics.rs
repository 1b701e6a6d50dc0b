//! The figures of a run.

use serde::{Deserialize, Serialize};

/// What one run took, all attempts together, in milliseconds. A phase that was never entered is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMetrics {
    /// From its creation until its first check.
    pub pre_run_ms: u64,
    /// Checks and actions before the work.
    pub constraint_check_ms: u64,
    /// From launch to running.
    pub pod_start_latency_ms: u64,
    pub execution_ms: u64,
    /// From the end of the work to the end of the attempt.
    pub termination_ms: u64,
    /// Between attempts.
    pub retry_wait_ms: u64,
    pub total_ms: u64,
    pub constraints_checked: u32,
    pub constraints_violated: u32,
    pub actions_executed: u32,
    pub actions_failed: u32,
    pub retry_attempt: u32,
    pub max_retries: u32,
    pub kubernetes_api_calls: u32,
    pub pod_exit_code: Option<i32>,
    pub heartbeats_sent: u32,
    pub success: bool,
}

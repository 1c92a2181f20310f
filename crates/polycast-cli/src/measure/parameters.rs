//! From what was measured to the parameters of the models: extended P-LogP (Patarasuk et al. 2008, §4.2) and Nupairoj 1998, chapter 2.

use polycast_core::model::{ClassParameters, Curve, CurveError};

use super::estimate::Estimate;
use super::size::Figures;

/// The parameters that follow from the figures of one size.
struct Derived {
    latency: Estimate,
    end: Estimate,
    send: Estimate,
    net: Estimate,
    receive: Estimate,
}

/// ```text
///          ├─────────── round trip = 2 t_end ───────────┤
///   P0     │ send │            t_idle            │ recv │      busy = send + recv
///   P1             net │ recv │ send │ net
/// ```
/// The dummy computation finds `t_idle = round trip - busy`; of it `t_net = t_idle - t_end` (Nupairoj 1998, §2.3.3). Nupairoj takes
/// `t_hold` for `t_send`, which are the same where the processor is what holds the sender. Where the link does, `t_hold` is
/// the link's time, and what the sender spends is the time of its call: the smaller of both. Calls that wait for the other
/// side (rendezvous) leave no idle time; then nothing is put down to the network. The three always add up to `t_end`.
fn derive(figures: &Figures) -> Derived {
    let end = figures.round_trip.scaled(0.5);
    let idle = figures.round_trip.minus(figures.busy);
    let net = idle.minus(end).clamped(0.0, end.ns);
    let held = if figures.gap.ns < figures.send_call.ns { figures.gap } else { figures.send_call };
    let send = held.clamped(0.0, end.ns - net.ns);
    let receive = Estimate { ns: end.ns - net.ns - send.ns, ..end.minus(net).minus(send) };
    Derived {
        latency: end.minus(figures.gap),
        end,
        send,
        net,
        receive: Estimate { low: receive.low.max(0.0), ..receive },
    }
}

/// The curves of a class.
pub fn class(figures: &[Figures]) -> Result<ClassParameters, CurveError> {
    let curve = |of: &dyn Fn(&Figures) -> Estimate| {
        Curve::new(figures.iter().map(|figures| of(figures).at(figures.bytes)).collect())
    };
    let derived = |of: fn(&Derived) -> Estimate| curve(&|figures| of(&derive(figures))).map(Some);
    Ok(ClassParameters {
        send_overhead: Some(curve(&|figures| figures.send_call)?),
        receive_overhead: Some(curve(&|figures| figures.receive_call)?),
        // A long Ping waits at each send for one to leave: its time per send is the gap, and the receiver's clock tells it.
        hold: Some(curve(&|figures| figures.gap)?),
        end: derived(|derived| derived.end)?,
        send: derived(|derived| derived.send)?,
        net: derived(|derived| derived.net)?,
        receive: derived(|derived| derived.receive)?,
        ..ClassParameters::new(curve(&|figures| derive(figures).latency)?, curve(&|figures| figures.gap)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(ns: f64) -> Estimate {
        Estimate { ns, low: ns, high: ns, samples: 36 }
    }

    fn figures(gap: f64, round_trip: f64, send_call: f64, receive_call: f64) -> Figures {
        Figures {
            bytes: 1,
            gap: exact(gap),
            round_trip: exact(round_trip),
            send_call: exact(send_call),
            receive_call: exact(receive_call),
            busy: exact(send_call + receive_call),
        }
    }

    /// Nupairoj 1998, §2.4, 1-byte messages of an IBM SP in µs: t_hold 19.15, t_end 53.295, and t_idle 67.2, from which t_net 13.9
    /// and t_recv 20.245 are derived there.
    #[test]
    fn the_worked_example_of_seed_4() {
        let round_trip = 2.0 * 53.295;
        let derived = derive(&figures(19.15, round_trip, 19.15, round_trip - 67.2 - 19.15));
        for (name, found, expected) in [
            ("end", derived.end.ns, 53.295),
            ("send", derived.send.ns, 19.15),
            ("net", derived.net.ns, 13.905),
            ("receive", derived.receive.ns, 20.24),
        ] {
            assert!((found - expected).abs() < 0.01, "{name}: {found}, expected {expected}");
        }
    }

    /// Patarasuk et al. 2008, Table 2, rows of 100 Mb/s and 1000 Mb/s, in µs.
    #[test]
    fn latency_as_in_seed_1() {
        for (gap, round_trip, latency) in
            [(89.0, 678.0, 250.0), (2781.0, 6208.0, 323.0), (541.0, 1142.0, 30.0)]
        {
            assert_eq!(derive(&figures(gap, round_trip, 10.0, 10.0)).latency.ns, latency);
        }
    }

    #[test]
    fn calls_that_wait_leave_nothing_to_the_network() {
        let derived = derive(&figures(100.0, 210.0, 104.0, 101.0));
        assert_eq!((derived.net.ns, derived.send.ns, derived.receive.ns), (0.0, 100.0, 5.0));
        // A burst that passes at once: the round trip is shorter than the gap.
        let derived = derive(&figures(437.0, 50.0, 33.0, 15.0));
        assert_eq!(derived.latency.ns, -412.0);
        assert_eq!(derived.send.ns + derived.net.ns + derived.receive.ns, 25.0);
        class(&[figures(437.0, 50.0, 33.0, 15.0)]).unwrap();
    }
}

//! From what was measured to the parameters of the models: extended P-LogP (Patarasuk et al. 2008, §4.2) and Nupairoj 1998, chapter 2.

use polycast_core::model::{ClassParameters, Curve, CurveError, Point};

use super::doubt::{self, Credit};
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

/// The curves of a class, as they were measured.
pub fn class(figures: &[Figures]) -> Result<ClassParameters, CurveError> {
    curves(figures, false).map(|(curves, _)| curves)
}

/// The curves of a class as predictions may take them, and a clause for each that has other points than were measured: what is not
/// credible is left out of it, and a latency below 0 that may be 0 is 0.
pub fn credible_class(figures: &[Figures]) -> Result<(ClassParameters, Vec<String>), CurveError> {
    curves(figures, true)
}

fn curves(figures: &[Figures], doubts: bool) -> Result<(ClassParameters, Vec<String>), CurveError> {
    let mut said = Vec::new();
    let curve = |of: &dyn Fn(&Figures) -> Estimate| {
        Curve::new(figures.iter().map(|figures| of(figures).at(figures.bytes)).collect())
    };
    let derived = |of: fn(&Derived) -> Estimate| curve(&|figures| of(&derive(figures))).map(Some);
    // What a part of a message takes is known no better than the whole of it.
    let mut part = |name: &str, of: &dyn Fn(&Figures) -> Estimate| -> Result<Option<Curve>, CurveError> {
        let points =
            figures.iter().map(|figures| (of(figures).at(figures.bytes), figures.round_trip.ns / 2.0));
        if !doubts {
            return Curve::new(points.map(|(point, _)| point).collect()).map(Some);
        }
        let Credit { points, clauses } = doubt::credible(name, points);
        said.extend(clauses);
        if points.is_empty() { Ok(None) } else { Curve::new(points).map(Some) }
    };
    let send_overhead = part("os(m)", &|figures| figures.send_call)?;
    let receive_overhead = part("or(m)", &|figures| figures.receive_call)?;
    let latency = part("L(m)", &|figures| derive(figures).latency)?;
    // A time that may be anything is taken for none, so that L + g is at least what a stream needs.
    let latency = latency.map_or_else(|| Curve::new(vec![nothing(figures)]), Ok)?;
    let curves = ClassParameters {
        send_overhead,
        receive_overhead,
        // A long Ping waits at each send for one to leave: its time per send is the gap, and the receiver's clock tells it.
        hold: Some(curve(&|figures| figures.gap)?),
        end: derived(|derived| derived.end)?,
        send: derived(|derived| derived.send)?,
        net: derived(|derived| derived.net)?,
        receive: derived(|derived| derived.receive)?,
        ..ClassParameters::new(latency, curve(&|figures| figures.gap)?)
    };
    Ok((curves, said))
}

/// Returns a latency of 0, for the shortest message.
fn nothing(figures: &[Figures]) -> Point {
    Point::exact(figures.first().map_or(0, |figures| figures.bytes), 0.0)
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

    /// A busy machine once left or(64) = 24.8 ms ± 94 % beside or(32) = 18 µs, and latencies below 0, without a word.
    #[test]
    fn what_is_not_credible_is_left_out_or_clipped_and_said() {
        let wide = |ns: f64, reach: f64| Estimate { ns, low: ns - reach, high: ns + reach, samples: 9 };
        let sizes = [32, 64, 128].map(|bytes| Figures { bytes, ..figures(100e3, 240e3, 5e3, 18e3) });
        let mut measured = sizes.to_vec();
        measured[1].receive_call = wide(24.8e6, 23.3e6);
        measured[2].round_trip = wide(180e3, 40e3);
        let (curves, said) = credible_class(&measured).unwrap();
        assert_eq!(
            said,
            [
                "or(m) of 64 (24.8 ± 23.3 ms) is left out",
                "L(m) of 128 is 0, for it was measured as -10.0 ± 20.0 µs"
            ]
        );
        let bytes = |curve: &Curve| curve.points().iter().map(|point| point.bytes).collect::<Vec<_>>();
        assert_eq!(bytes(curves.receive_overhead.as_ref().unwrap()), [32, 128]);
        assert_eq!(bytes(&curves.latency), [32, 64, 128]);
        assert_eq!(curves.latency.at(128), 0.0);
        let as_measured = class(&measured).unwrap();
        assert_eq!(bytes(as_measured.receive_overhead.as_ref().unwrap()), [32, 64, 128]);
        assert_eq!(as_measured.latency.at(128), -10e3);
    }

    /// A link that lets the first packets pass at once: the round trip is shorter than the gap, beyond any doubt.
    #[test]
    fn a_latency_that_is_below_0_is_explained() {
        let (curves, said) = credible_class(&[figures(437e3, 50e3, 33e3, 15e3)]).unwrap();
        assert_eq!(curves.latency.at(1), -412e3);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("L(m) of 1 is below 0"), "{said:?}");
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

use super::{Action, After, Kind, Lane, LaneIndex, Schedule, Step};

/// A schedule that is written down step by step: for lanes of few steps, and for tests that change single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    lanes: Vec<Lane>,
    steps: Vec<Vec<Step>>,
    scratch_bytes: u64,
}

impl Listed {
    /// Copies another schedule, step by step.
    pub fn copy_of(schedule: &(impl Schedule + ?Sized)) -> Listed {
        let mut listed = Listed { scratch_bytes: schedule.scratch_bytes(), ..Listed::default() };
        for (index, lane) in schedule.lanes().iter().enumerate() {
            listed.lanes.push(lane.clone());
            listed.steps.push((0..lane.steps).map(|step| schedule.step(index, step)).collect());
        }
        listed
    }

    /// Adds a lane without steps.
    pub fn lane(&mut self, kind: Kind) -> LaneIndex {
        self.lanes.push(Lane::new(kind, 0));
        self.steps.push(Vec::new());
        self.lanes.len() - 1
    }

    /// Adds a step to a lane; returns the number of its steps then.
    pub fn add(&mut self, lane: LaneIndex, action: Action, after: After) -> u64 {
        self.steps[lane].push(Step { action, after });
        self.lanes[lane].steps += 1;
        self.lanes[lane].steps
    }

    /// Adds a lane of one step.
    pub fn single(&mut self, kind: Kind, action: Action, after: After) -> LaneIndex {
        let lane = self.lane(kind);
        self.add(lane, action, after);
        lane
    }

    /// Sets how much scratch memory the steps name.
    pub fn set_scratch_bytes(&mut self, bytes: u64) {
        self.scratch_bytes = bytes;
    }

    /// Returns a lane, to be changed.
    pub fn lane_mut(&mut self, lane: LaneIndex) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// Changes a lane's steps; [`Lane::steps`] counts those that are left.
    pub fn change_steps(&mut self, lane: LaneIndex, change: impl FnOnce(&mut Vec<Step>)) {
        change(&mut self.steps[lane]);
        self.lanes[lane].steps = self.steps[lane].len() as u64;
    }
}

impl Schedule for Listed {
    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        self.steps[lane][index as usize].clone()
    }

    fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }
}

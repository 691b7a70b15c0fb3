//! What is measured. Each has a name, under which it stands in the `metrics` documents.

/// Things that are counted: the numbers only rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Jobs that were accepted and are new.
    JobsSubmitted,
    /// Jobs that ended here as SUCCESSFUL.
    JobsSuccessful,
    /// Jobs that ended here as FAILED.
    JobsFailed,
    /// Jobs that ended here as ERROR.
    JobsInError,
    /// Attempts that failed here, and are followed by another.
    JobsRetried,
    /// Jobs that were claimed here and given back for others to run.
    JobsGivenBack,
    /// Claims of due jobs that were answered.
    Claims,
    /// Jobs that these brought.
    JobsClaimed,
    /// Writes that found another version, because somebody else wrote first.
    Conflicts,
    /// Calls of the store that failed, or were not answered.
    StoreErrors,
    /// Messages that were sent to the observer.
    ObserverMessages,
    /// Lines for the log that found no room.
    LogLinesDropped,
    /// Buckets of metrics that could not be stored for so long that they were given up.
    BucketsDropped,
    /// Documents that were older than they are kept, and went.
    Cleared,
}

impl Count {
    pub const ALL: [Count; 14] = [
        Count::JobsSubmitted,
        Count::JobsSuccessful,
        Count::JobsFailed,
        Count::JobsInError,
        Count::JobsRetried,
        Count::JobsGivenBack,
        Count::Claims,
        Count::JobsClaimed,
        Count::Conflicts,
        Count::StoreErrors,
        Count::ObserverMessages,
        Count::LogLinesDropped,
        Count::BucketsDropped,
        Count::Cleared,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Count::JobsSubmitted => "jobsSubmitted",
            Count::JobsSuccessful => "jobsSuccessful",
            Count::JobsFailed => "jobsFailed",
            Count::JobsInError => "jobsInError",
            Count::JobsRetried => "jobsRetried",
            Count::JobsGivenBack => "jobsGivenBack",
            Count::Claims => "claims",
            Count::JobsClaimed => "jobsClaimed",
            Count::Conflicts => "conflicts",
            Count::StoreErrors => "storeErrors",
            Count::ObserverMessages => "observerMessages",
            Count::LogLinesDropped => "logLinesDropped",
            Count::BucketsDropped => "bucketsDropped",
            Count::Cleared => "documentsCleared",
        }
    }

    pub fn units(self) -> &'static str {
        match self {
            Count::JobsSubmitted
            | Count::JobsSuccessful
            | Count::JobsFailed
            | Count::JobsInError
            | Count::JobsRetried
            | Count::JobsGivenBack
            | Count::JobsClaimed => "jobs",
            Count::Claims => "claims",
            Count::Conflicts => "writes",
            Count::StoreErrors => "calls",
            Count::ObserverMessages => "messages",
            Count::LogLinesDropped => "lines",
            Count::BucketsDropped => "buckets",
            Count::Cleared => "documents",
        }
    }
}

/// Things that take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// From the request of one job until it is on disk.
    JobRequest,
    /// The same, of a request of many at once.
    BatchRequest,
    /// From the instant at which a job may run until its handler begins.
    QueueWait,
    /// From the beginning of a handler to its end.
    RunTime,
    /// From the instant at which a heartbeat is due until it is acknowledged.
    HeartbeatLag,
    /// From the sending of a message until the observer has it.
    Observer,
    StoreWrite,
    StoreRead,
    StoreFind,
    StoreCount,
    StoreClaim,
    StoreSequence,
}

impl Latency {
    pub const ALL: [Latency; 12] = [
        Latency::JobRequest,
        Latency::BatchRequest,
        Latency::QueueWait,
        Latency::RunTime,
        Latency::HeartbeatLag,
        Latency::Observer,
        Latency::StoreWrite,
        Latency::StoreRead,
        Latency::StoreFind,
        Latency::StoreCount,
        Latency::StoreClaim,
        Latency::StoreSequence,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Latency::JobRequest => "jobRequestLatency",
            Latency::BatchRequest => "batchRequestLatency",
            Latency::QueueWait => "queueWait",
            Latency::RunTime => "runTime",
            Latency::HeartbeatLag => "heartbeatLag",
            Latency::Observer => "observerLatency",
            Latency::StoreWrite => "storeWriteLatency",
            Latency::StoreRead => "storeReadLatency",
            Latency::StoreFind => "storeFindLatency",
            Latency::StoreCount => "storeCountLatency",
            Latency::StoreClaim => "storeClaimLatency",
            Latency::StoreSequence => "storeSequenceLatency",
        }
    }
}

/// Things that rise and fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Jobs that run here.
    Running,
    /// Jobs that may run here at once.
    Capacity,
    /// Sections of the queue that this node looks at first.
    Sections,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::Running, Level::Capacity, Level::Sections];

    pub fn name(self) -> &'static str {
        match self {
            Level::Running => "running",
            Level::Capacity => "capacity",
            Level::Sections => "sections",
        }
    }

    pub fn units(self) -> &'static str {
        match self {
            Level::Running | Level::Capacity => "jobs",
            Level::Sections => "sections",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_place_and_name() {
        let places = |of: Vec<usize>| of.into_iter().enumerate().all(|(nth, place)| nth == place);
        assert!(places(Count::ALL.iter().map(|count| *count as usize).collect()));
        assert!(places(Latency::ALL.iter().map(|latency| *latency as usize).collect()));
        assert!(places(Level::ALL.iter().map(|level| *level as usize).collect()));
        let mut names: Vec<_> = Count::ALL.iter().map(|count| count.name()).collect();
        names.extend(Latency::ALL.iter().map(|latency| latency.name()));
        names.extend(Level::ALL.iter().map(|level| level.name()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}

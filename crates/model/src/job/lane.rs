//! The lane of a job: its domain, its urgency and its type. Lanes that have due work are served in turns, so that nobody
//! has to wait behind all of another's jobs.

use std::fmt;
use std::str::FromStr;

use crate::domain::Domain;

/// Written out as `{domain}|{priority}|{type}`, which is how it is stored and sorted. No domain has a `|` in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    pub domain: Domain,
    pub priority: u8,
    pub kind: String,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}", self.domain, self.priority, self.kind)
    }
}

/// What was read is not the name of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lane is {{domain}}|{{priority}}|{{type}}")]
pub struct NoLane;

impl FromStr for Lane {
    type Err = NoLane;

    fn from_str(text: &str) -> Result<Self, NoLane> {
        let mut parts = text.splitn(3, '|');
        let mut next = || parts.next().ok_or(NoLane);
        let (domain, priority, kind) = (next()?, next()?, next()?);
        Ok(Self {
            domain: domain.parse().map_err(|_| NoLane)?,
            priority: priority.parse().map_err(|_| NoLane)?,
            kind: kind.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in ["mail", "a|b", "", "|", "é 9"] {
            let lane = Lane { domain: Domain::default(), priority: 9, kind: kind.to_owned() };
            assert_eq!(lane.to_string().parse(), Ok(lane));
        }
        for wrong in ["", "default", "default|5", "|5|mail", "default|x|mail", "Default|5|mail"] {
            assert_eq!(wrong.parse::<Lane>(), Err(NoLane), "{wrong}");
        }
    }
}

//! The documents of seed 001.

use rota_model::Extra;
use rota_model::backup::element_execution::{ElementExecution, ElementStatus};
use rota_model::backup::job::{BackupJob, BackupKind, BackupStatus};
use rota_model::backup::network_element::NetworkElement;
use rota_model::backup::schedule::{BackupSchedule, DayOfWeek, Frequency, ScheduleStatus};
use rota_model::backup::server::{SecretField, ServerConfiguration};
use rota_model::domain::Domain;
use rota_model::ids::{BackupJobId, ScheduleId, ServerId};
use rota_model::secret::{Sealed, SealingKey, Secret};

use super::{Filled, NOW};

pub(super) fn documents() -> Vec<Filled> {
    vec![
        Filled::new("backup-schedules", &schedule(), &[""]),
        Filled::new("backup-job-execution", &job(), &[""]),
        Filled::new("backup-job-ne-executions", &element_execution(), &[""]),
        Filled::new("server-configuration", &server(), &[""]),
        Filled::new("network-elements", &network_element(), &[""]),
    ]
}

fn schedule() -> BackupSchedule {
    BackupSchedule {
        schedule_id: ScheduleId::derived(&["s"]),
        schedule_name: "nightly".to_owned(),
        server_name: "files".to_owned(),
        vendor: Some("acme".to_owned()),
        model: Some("r1".to_owned()),
        frequency: Frequency::Weekly,
        cron_expression: Some("30 23 * * 0".to_owned()),
        run_once_at: Some(NOW),
        run_at_time: Some("00:30".to_owned()),
        day_of_week: Some(DayOfWeek::Monday),
        day_of_month: Some(31),
        status: ScheduleStatus::Paused,
        created_time: NOW,
        last_modified_time: NOW,
        created_by_user: Some("local:alice".to_owned()),
        last_modified_by_user: Some("local:bob".to_owned()),
        last_run_time: Some(NOW),
        next_run_time: Some(NOW),
        time_zone: "Europe/Berlin".to_owned(),
        force_upload: true,
        domain: Some(Domain::default()),
        extra: Extra::new(),
    }
}

fn job() -> BackupJob {
    BackupJob {
        job_id: BackupJobId::derived(&["j"]),
        job_name: "nightly, Monday".to_owned(),
        schedule_id: Some(ScheduleId::derived(&["s"])),
        status: BackupStatus::InProgress,
        total_nes: 10,
        succeeded_nes: 4,
        aborted_nes: 3,
        failed_nes: 2,
        start_time: Some(NOW),
        end_time: Some(NOW),
        job_created_time: NOW,
        job_updated_time: NOW,
        aborted_by_user: Some("local:alice".to_owned()),
        kind: BackupKind::Restore,
        domain: Some(Domain::default()),
        extra: Extra::new(),
    }
}

fn element_execution() -> ElementExecution {
    ElementExecution {
        job_id: BackupJobId::derived(&["j"]),
        ne_id: "router-1".to_owned(),
        status: ElementStatus::Failed,
        retry_attempt: 2,
        retry_eligible: true,
        start_time: Some(NOW),
        end_time: Some(NOW),
        error_message: Some("no answer".to_owned()),
        backup_file_stored_path: Some("/backups/router-1/1".to_owned()),
        content_hash: Some("0".repeat(64)),
        size_bytes: Some(4_096),
        epoch: 3,
        domain: Some(Domain::default()),
        extra: Extra::new(),
    }
}

fn server() -> ServerConfiguration {
    ServerConfiguration {
        username_at_file_server: Some("rota".to_owned()),
        password_at_file_server: Some(sealed(SecretField::PasswordAtFileServer)),
        destination_uri: "sftp://files.example.org/backups".to_owned(),
        server_name: "files".to_owned(),
        server_id: ServerId::derived(&["files"]),
        ssh_key: Some(sealed(SecretField::SshKey)),
        retention_period: Some(30),
        domain: Some(Domain::default()),
        extra: Extra::new(),
    }
}

fn sealed(field: SecretField) -> Sealed {
    let context = ServerConfiguration::context(ServerId::derived(&["files"]), field);
    SealingKey::new([1; 32]).seal(&Secret::new("hunter2".to_owned()), [2; 24], &context).unwrap()
}

fn network_element() -> NetworkElement {
    NetworkElement {
        ne_id: "router-1".to_owned(),
        name: Some("the one in the cellar".to_owned()),
        address: "192.0.2.1".to_owned(),
        port: Some(22),
        vendor: "acme".to_owned(),
        model: "r1".to_owned(),
        group: Some("edge".to_owned()),
        credentials_ref: Some("edge-routers".to_owned()),
        domain: Some(Domain::default()),
        extra: Extra::new(),
    }
}

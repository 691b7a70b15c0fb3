-- What each role may do. It may be run again, and must be after an upgrade of the tables.
-- A login has the rights of the roles that it is a member of: GRANT "rota_web" TO alice;
BEGIN;
DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_web') THEN CREATE ROLE "rota_web" NOLOGIN; END IF; END$$;
DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_recorder') THEN CREATE ROLE "rota_recorder" NOLOGIN; END IF; END$$;
DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_scheduler') THEN CREATE ROLE "rota_scheduler" NOLOGIN; END IF; END$$;
DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_processor') THEN CREATE ROLE "rota_processor" NOLOGIN; END IF; END$$;
DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_reader') THEN CREATE ROLE "rota_reader" NOLOGIN; END IF; END$$;
DO $$BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO "rota_web", "rota_recorder", "rota_scheduler", "rota_processor", "rota_reader"', current_schema()); END$$;
REVOKE ALL ON facts, sequences, counts, "jobs.rows", "jobs", "jobs.words", "state.rows", "state", "users.rows", "users", "domains.rows", "domains", "settings.rows", "settings", "timers.rows", "timers", "executions.rows", "executions", "progress.rows", "progress", "job-types.rows", "job-types", "unique-keys.rows", "unique-keys", "limits.rows", "limits", "logs.rows", "logs", "metrics.rows", "metrics" FROM "rota_web", "rota_recorder", "rota_scheduler", "rota_processor", "rota_reader";
GRANT SELECT ON facts TO "rota_web", "rota_recorder", "rota_scheduler", "rota_processor";
GRANT SELECT, INSERT, UPDATE ON sequences TO "rota_web", "rota_recorder", "rota_scheduler", "rota_processor";
GRANT SELECT, INSERT, DELETE ON counts TO "rota_web", "rota_recorder", "rota_scheduler", "rota_processor";
-- jobs
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.words" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.words" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.rows" TO "rota_processor";
GRANT SELECT, INSERT, UPDATE, DELETE ON "jobs.words" TO "rota_processor";
GRANT SELECT ON "jobs" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- state
GRANT SELECT, INSERT, UPDATE, DELETE ON "state.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "state.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "state.rows" TO "rota_processor";
GRANT SELECT ON "state" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- users
GRANT SELECT, INSERT, UPDATE, DELETE ON "users.rows" TO "rota_web";
GRANT SELECT ON "users" TO "rota_web";
-- domains
GRANT SELECT, INSERT, UPDATE, DELETE ON "domains.rows" TO "rota_web";
GRANT SELECT ON "domains.rows" TO "rota_scheduler";
GRANT SELECT ON "domains.rows" TO "rota_processor";
GRANT SELECT ON "domains" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- settings
GRANT SELECT, INSERT, UPDATE, DELETE ON "settings.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "settings.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "settings.rows" TO "rota_processor";
GRANT SELECT ON "settings" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- timers
GRANT SELECT ON "timers.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "timers.rows" TO "rota_recorder";
GRANT SELECT ON "timers.rows" TO "rota_scheduler";
GRANT SELECT ON "timers" TO "rota_web", "rota_recorder", "rota_scheduler", "rota_reader";
-- executions
GRANT SELECT ON "executions.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "executions.rows" TO "rota_recorder";
GRANT SELECT ON "executions.rows" TO "rota_scheduler";
GRANT SELECT ON "executions" TO "rota_web", "rota_recorder", "rota_scheduler", "rota_reader";
-- progress
GRANT SELECT, INSERT, UPDATE, DELETE ON "progress.rows" TO "rota_recorder";
GRANT SELECT ON "progress.rows" TO "rota_scheduler";
GRANT SELECT ON "progress" TO "rota_recorder", "rota_scheduler";
-- job-types
GRANT SELECT, INSERT, UPDATE, DELETE ON "job-types.rows" TO "rota_web";
GRANT SELECT ON "job-types.rows" TO "rota_scheduler";
GRANT SELECT ON "job-types.rows" TO "rota_processor";
GRANT SELECT ON "job-types" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- unique-keys
GRANT SELECT, INSERT, UPDATE, DELETE ON "unique-keys.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "unique-keys.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "unique-keys.rows" TO "rota_processor";
GRANT SELECT ON "unique-keys" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- limits
GRANT SELECT, INSERT, UPDATE, DELETE ON "limits.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "limits.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "limits.rows" TO "rota_processor";
GRANT SELECT ON "limits" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- logs
GRANT SELECT, INSERT, UPDATE, DELETE ON "logs.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "logs.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "logs.rows" TO "rota_processor";
GRANT SELECT ON "logs" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
-- metrics
GRANT SELECT, INSERT, UPDATE, DELETE ON "metrics.rows" TO "rota_web";
GRANT SELECT, INSERT, UPDATE, DELETE ON "metrics.rows" TO "rota_scheduler";
GRANT SELECT, INSERT, UPDATE, DELETE ON "metrics.rows" TO "rota_processor";
GRANT SELECT ON "metrics" TO "rota_web", "rota_scheduler", "rota_processor", "rota_reader";
COMMIT;

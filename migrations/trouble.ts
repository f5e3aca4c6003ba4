import { NewerSchemaError } from './schema-build.ts'

/** What kept the schema from being brought up to date, and what its operator does about it. */
export type MigrationTrouble = { problem: string; remedy: string }

const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET']

/**
 * Explains what a migration threw; null where the error is a fault of ours. Never holds the password of `databaseUrl`.
 * Codes are those of PostgreSQL's manual, appendix A.
 */
export function migrationTrouble(error: unknown, databaseUrl: string): MigrationTrouble | null {
  if (error instanceof NewerSchemaError) return { problem: error.message, remedy: 'Nothing was changed.' }
  const { host, login, database } = partsOf(databaseUrl)
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  if (unreachable.includes(code))
    return { problem: `Nothing answers at ${host} (${code})`, remedy: 'Start PostgreSQL, or correct DATABASE_URL.' }
  if (code === '28P01' || code === '28000')
    return {
      problem: `PostgreSQL at ${host} refuses the login: ${message}`,
      remedy: "Correct the user or the password of DATABASE_URL, or the server's pg_hba.conf.",
    }
  if (code === '3D000')
    return {
      problem: `PostgreSQL at ${host} has no database ${database}`,
      remedy: `As its administrator: CREATE DATABASE ${quoted(database)} OWNER ${quoted(login)};`,
    }
  if (code === '42501') return refused(message, login, database)
  if (/CERT|ALTNAME|VERIFY_LEAF|self-signed/.test(`${code} ${message}`))
    return {
      problem: `The certificate of PostgreSQL at ${host} is not believed: ${message.split(';')[0]}`,
      remedy: 'Name its authority in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/ca.pem',
    }
  if (message.includes('pg_trgm'))
    return {
      problem: `PostgreSQL at ${host} has no extension pg_trgm: ${message}`,
      remedy: "Install the package with PostgreSQL's own extensions (postgresql-contrib).",
    }
  return null
}

function refused(message: string, login: string, database: string): MigrationTrouble {
  if (/create role|grant role|nightshift_app/.test(message))
    return {
      problem: `${login} may not make the role nightshift_app, as which the services run`,
      remedy: `As PostgreSQL's administrator: CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO ${quoted(login)};`,
    }
  return {
    problem: `${login} may not change the schema of ${database}: ${message}`,
    remedy: `As PostgreSQL's administrator: ALTER DATABASE ${quoted(database)} OWNER TO ${quoted(login)};`,
  }
}

function partsOf(databaseUrl: string): { host: string; login: string; database: string } {
  const url = URL.parse(databaseUrl)
  return {
    host: url?.host || url?.searchParams.get('host') || 'localhost',
    login: decodeURIComponent(url?.username || 'the login'),
    database: decodeURIComponent(url?.pathname.slice(1) || 'of DATABASE_URL'),
  }
}

const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)

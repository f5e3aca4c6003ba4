import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { version } from '../../../domain/version.ts'
import type { ComposeEngine } from './engine.ts'

const checkout = join(import.meta.dirname, '../../..')
/** The network of the containers, so that they reach what stands outside. */
export const outside = '172.31.7.1'

export type ComposeSite = {
  tokens: { admin: string; ingest: string }
  passwords: { POSTGRES_PASSWORD: string; NIGHTSHIFT_DB_PASSWORD: string; TEMPORAL_DB_PASSWORD: string }
  /**
   * Writes the folder: the compose file, `.env` with these settings, secrets, and what this engine
   * needs besides.
   */
  write(settings: Record<string, string>, file?: string): void
  compose(...words: string[]): Promise<string>
  /** What Docker knows of the container of a service. */
  inspect(service: string): Promise<Inspected>
  psql(database: string, sql: string): Promise<string>
}

export type Inspected = {
  Image: string
  HostConfig: { ReadonlyRootfs: boolean }
  Config: { User: string; Image: string }
  RestartCount: number
  State: {
    Status: string
    ExitCode: number
    StartedAt: string
    Health?: { Status: string; Log: { ExitCode: number; End: string }[] }
  }
}

const services = [
  'postgresql',
  'logins',
  'temporal-schema',
  'temporal',
  'temporal-namespace',
  'migrate',
  'api',
  'worker',
]

/** A folder as somebody has it who follows the page: `.env` from its example, secrets as files. */
export function composeSite(place: string, engine: ComposeEngine): ComposeSite {
  const folder = join(place, 'site')
  const secret = () => randomBytes(24).toString('hex')
  const tokens = { admin: secret(), ingest: secret() }
  const passwords = { POSTGRES_PASSWORD: secret(), NIGHTSHIFT_DB_PASSWORD: secret(), TEMPORAL_DB_PASSWORD: secret() }
  for (const name of ['secrets', 'secrets-api']) mkdirSync(join(folder, name), { recursive: true })
  for (const [name, value] of Object.entries({ ...tokens, agent: secret() })) {
    writeFileSync(join(folder, 'secrets', name), `${value}\n`)
    chmodSync(join(folder, 'secrets', name), 0o644)
  }
  const known = {
    BOOTSTRAP_ADMIN_TOKEN_FILE: '/run/nightshift/admin',
    BOOTSTRAP_INGEST_TOKEN_FILE: '/run/nightshift/ingest',
    AGENT_API_KEY_FILE: '/run/nightshift/agent',
    AGENT_ENABLED: 'true',
    LLM_BASE_URL: `http://${outside}:8000/v1`,
    QUEUE_INTERVAL_SECONDS: '2',
  }
  const compose = (...words: string[]) => engine.compose(folder, ...words)
  return {
    tokens,
    passwords,
    write(settings, file = readFileSync(join(checkout, 'docker-compose.yml'), 'utf8')) {
      writeFileSync(join(folder, 'docker-compose.yml'), file)
      writeFileSync(join(folder, 'docker-compose.override.yml'), override(file))
      const filled = Object.entries({ ...known, ...settings }).reduce(
        (text, [name, value]) => {
          const line = new RegExp(`^#?${name}=.*$`, 'm')
          return line.test(text) ? text.replace(line, `${name}=${value}`) : `${text}${name}=${value}\n`
        },
        readFileSync(join(checkout, '.env.example'), 'utf8'),
      )
      writeFileSync(join(folder, '.env'), filled)
    },
    compose,
    async inspect(service) {
      const id = (await compose('ps', '--all', '--quiet', service)).trim()
      return JSON.parse(await engine.docker('inspect', id))[0]
    },
    psql: async (database, sql) =>
      (
        await compose(
          'exec',
          '-T',
          'postgresql',
          'psql',
          '-h',
          '/var/run/postgresql',
          '-U',
          'nightshift',
          '-d',
          database,
          '-Atc',
          sql,
        )
      ).trim(),
  }
}

/**
 * This engine has no registry, so the pages of Temporal are left out, and no name server but ours.
 */
function override(file: string): string {
  const there = services.filter((name) => file.includes(`\n  ${name}:\n`))
  const named = Object.fromEntries(there.map((name) => [name, { dns: [outside] }]))
  const network = { default: { ipam: { config: [{ subnet: '172.31.7.0/24', gateway: outside }] } } }
  return `${stringify({ services: named, networks: network })}`.replace(
    'services:\n',
    'services:\n  temporal-ui:\n    profiles: !override [never]\n',
  )
}

/** The compose file that named one login for all, with the image and the programs of this build. */
export function oneLoginFile(): string {
  const text = readFileSync(join(import.meta.dirname, 'one-login.yml'), 'utf8')
  return text.replace(/nightshift:0\.1\.0/, `nightshift:${version}`).replaceAll(/(\w+\/\w+)\.ts\]/g, '$1.js]')
}

/** The time of a container's first answer that it is healthy, after its start. */
export function secondsToHealthy({ State: { StartedAt, Health } }: Inspected): string {
  const first = Health?.Log.find(({ ExitCode }) => ExitCode === 0)
  const end = execFileSync('date', ['--date', first?.End ?? StartedAt, '+%s.%N'], { encoding: 'utf8' })
  return (Number(end) - Date.parse(StartedAt) / 1_000).toFixed(1)
}

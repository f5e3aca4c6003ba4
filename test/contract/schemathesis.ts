import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rootDir } from '../../bin/node24.js'

const requirements = join(import.meta.dirname, 'requirements.txt')

/**
 * The pinned schemathesis, in a virtual environment under `.cache`; installed from the package index where it is not there yet.
 * `SCHEMATHESIS` names another one. Needs Python 3.10 or later with venv (Debian: python3-venv).
 */
export function schemathesis(): string {
  if (process.env.SCHEMATHESIS) return process.env.SCHEMATHESIS
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const home = join(rootDir, '.cache', `schemathesis-${version}`)
  const program = join(home, 'bin', 'schemathesis')
  if (existsSync(join(home, 'complete'))) return program
  rmSync(home, { recursive: true, force: true })
  run('python3', ['-m', 'venv', home])
  run(join(home, 'bin', 'python'), [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '-r',
    requirements,
  ])
  run('touch', [join(home, 'complete')])
  return program
}

function run(command: string, args: string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'] })
  if (status === 0) return
  throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? stderr.slice(-2000)}`)
}

export type Outcome = { status: number; output: string }

/** Runs it over a document's address and answers everything it said. */
export async function check(documentUrl: string, args: readonly string[], token: string): Promise<Outcome> {
  const config = join(import.meta.dirname, 'schemathesis.toml')
  const child = spawn(schemathesis(), ['--config-file', config, 'run', documentUrl, ...args], {
    cwd: join(rootDir, '.cache'),
    env: { ...process.env, NIGHTSHIFT_TOKEN: token, NO_COLOR: '1', PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const hear = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status: status ?? -1, output }))
  })
}

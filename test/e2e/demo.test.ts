import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from '@jest/globals'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

const rootDir = fileURLToPath(new URL('../..', import.meta.url))
const nightshift = join(rootDir, 'bin/nightshift.js')
const execute = promisify(execFile)
let cleanUp: (() => Promise<void>) | undefined

afterEach(async () => {
  await cleanUp?.()
})

/** Processes whose command line or working files lie in this directory. */
async function processesIn(directory: string): Promise<string[]> {
  const { stdout } = await execute('ps', ['-eo', 'pid,args'])
  return stdout.split('\n').filter((line) => line.includes(directory))
}

test('npm start shows both scenes, stops for a person, accepts a decision by signal, reports the owner of what still fires, and Ctrl-C leaves nothing behind', async () => {
  const state = temporaryDirectory()
  // Ports that no other test's start looks for: between choosing one and listening on it pass some
  // seconds.
  const names = ['PORT', 'WORKER_PORT', 'LAB_PORT', 'RUNBOOK_PORT']
  const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, String(await freePort())])))
  const environment = {
    ...process.env,
    ...ports,
    NIGHTSHIFT_STATE_DIR: state.path,
    NO_COLOR: '1',
    npm_lifecycle_event: 'start',
  }
  const start = spawn(process.execPath, [nightshift, 'start'], { cwd: rootDir, env: environment, detached: true })
  let output = ''
  start.stdout.on('data', (chunk) => {
    output += chunk
  })
  start.stderr.on('data', (chunk) => {
    output += chunk
  })
  // A terminal's Ctrl-C goes to the whole foreground group.
  const interrupt = () => process.kill(-(start.pid as number), 'SIGINT')
  const ended = new Promise<number | null>((resolve) => start.once('exit', resolve))
  cleanUp = async () => {
    if (start.exitCode === null) interrupt()
    await Promise.race([ended, sleep(15_000, undefined, { ref: false })])
    state.remove()
  }
  const shown = async (text: string) => {
    const isShown = () => output.includes(text)
    await eventually(text, () => isShown() || start.exitCode !== null).catch(() => undefined)
    if (!isShown()) throw new Error(`"${text}" was not shown:\n${output}`)
  }

  await shown('Nightshift is ready')
  await shown('Scene 2 of 2')
  expect(output).toMatch(/is resolved: repaired\.\n.*all \d+ checks hold/)
  await shown('Awaiting approval')
  const approvalId = /apr_[0-9a-z]{26}/.exec(output)?.[0] as string
  const workflowId = /investigate:inc_[0-9a-z]{26}:\d+/.exec(output)?.[0] as string
  const run = JSON.parse(readFileSync(join(state.path, 'run.json'), 'utf8')) as { temporalAddress: string }
  const temporal = await findTemporalCli({ rootDir, env: process.env })
  const signal = (input: object) =>
    execute(temporal.path, [
      'workflow',
      'signal',
      '--address',
      run.temporalAddress,
      '--workflow-id',
      workflowId,
      '--name',
      'approve',
      '--input',
      JSON.stringify(input),
    ])
  await signal({ by: 'root', approved: true })
  await shown('BARE_APPROVAL')
  expect(output).not.toContain('Approved by')
  const { stdout: token } = await execute(process.execPath, [nightshift, 'approvals', 'token', approvalId, 'approve'], {
    env: environment,
  })
  await signal({ token: token.trim() })
  await shown('Nightshift keeps running')
  expect(output.match(/all \d+ checks hold/g)).toHaveLength(2)
  // The VMs run elsewhere and the host is still dead: its alert fires, and somebody has it.
  expect(output).toContain('is escalated: mitigated.')
  expect(output).toContain('host_down on host-osl-1 still fires: escalated (mitigated).')
  expect(output).toMatch(/Mark the host as repaired:\s+npm run -s nightshift -- lab heal/)
  expect(output).not.toContain('no person has')

  interrupt()
  expect(await ended).not.toBeNull()
  expect(await processesIn(state.path)).toEqual([])
})

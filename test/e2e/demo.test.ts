import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { FaultName } from '../../lab/state.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'

describe('demo', () => {
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

  test('npm start shows both scenes, stops for a person, takes a decision by signal, tells who has what still fires, and Ctrl-C leaves nothing behind', async () => {
    const state = temporaryDirectory()
    // Ports that no other test's start looks for: between choosing one and listening on it pass some seconds.
    const names = ['PORT', 'WORKER_PORT', 'LAB_PORT', 'RUNBOOK_PORT']
    const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, String(await freePort())])))
    const environment = { ...process.env, ...ports, NIGHTSHIFT_STATE_DIR: state.path, NO_COLOR: '1' }
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
        ...['workflow', 'signal', '--address', run.temporalAddress, '--workflow-id', workflowId, '--name', 'approve'],
        ...['--input', JSON.stringify(input)],
      ])
    await signal({ by: 'root', approved: true })
    await shown('UNKNOWN_TOKEN')
    expect(output).not.toContain('Approved by')
    const { stdout: token } = await execute(
      process.execPath,
      [nightshift, 'approvals', 'token', approvalId, 'approve'],
      {
        env: environment,
      },
    )
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
})

describe('placement', () => {
  let spine: Spine

  beforeAll(async () => {
    spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  })
  afterAll(async () => {
    await spine?.stop()
  })
  afterEach(async () => {
    await spine.until('every incident to end', async () => (await spine.incidents()).every(isOver))
    await spine.lab.heal()
  })

  const isOver = ({ status }: Incident) => ['resolved', 'escalated'].includes(status)

  /** The incident about a host, once it has ended. */
  const ended = (host: string) =>
    spine.until(`the end of ${host}`, async () =>
      (await spine.incidents()).find((incident) => incident.resource?.id === host && isOver(incident)),
    )

  async function approve(approval: Approval): Promise<void> {
    const as = { token: spine.tokens.approver }
    const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
    await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
  }

  /** What the oracle has to say against it. */
  async function complaints(fault: FaultName, target: string): Promise<string[]> {
    const { checks } = await spine.lab.oracle(fault, target)
    return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
  }

  const steps = (events: IncidentEvent[]) =>
    events.flatMap((event) =>
      event.kind === 'step_finished' ? [`${event.metadata.step} ${event.metadata.status}`] : [],
    )
  const writes = (events: IncidentEvent[]) =>
    events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')
  const movesOf = async (method: string) =>
    (await spine.lab.effects()).filter(({ request }) => request.includes(`/${method} `))

  test('a host to be emptied has its VMs moved while they run, and a VM that fits nowhere is told to a person', async () => {
    await spine.lab.break('no_room', 'host-ams-5')
    await spine.lab.break('drain', 'host-osl-3')
    const asked = await spine.pendingApproval()
    expect(asked).toMatchObject({ tool: 'execute_migration', status: 'pending' })
    await approve(asked)

    const drained = await ended('host-osl-3')
    expect([drained.type, drained.status, drained.severity]).toEqual(['host_draining', 'resolved', 'warning'])
    expect(await complaints('drain', 'host-osl-3')).toEqual([])
    expect(await movesOf('migrate')).toMatchObject([{ status: 'done' }, { status: 'done' }, { status: 'done' }])
    expect(await movesOf('start')).toEqual([])

    const lost = await ended('host-ams-5')
    expect([lost.type, lost.status]).toEqual(['host_down', 'escalated'])
    expect(lost.resolution).toMatch(/vm-125/)
    expect(lost.category).toBe('no_tool')
    const events = await spine.events(lost.id)
    expect(JSON.stringify(events.find(({ kind }) => kind === 'escalated'))).toMatch(/\d+ MiB more on host-ams-\d/)
    expect(writes(events)).toEqual([])
    expect(await complaints('no_room', 'host-ams-5')).toEqual([])
  })

  test('of a dead rack one plan brings back what matters most, and a person is told who stays down', async () => {
    await spine.lab.break('rack_down', 'osl-r1')
    const asked = await spine.pendingApproval()
    await approve(asked)
    const [first, second] = [await ended('host-osl-1'), await ended('host-osl-2')]
    expect(await complaints('rack_down', 'osl-r1')).toEqual([])
    const vms = (await spine.get<{ items: { id: string; running: boolean }[] }>('/vms')).items
    const running = vms.filter((vm) => vm.running).map((vm) => vm.id)
    expect(running).toEqual(expect.arrayContaining(['vm-101', 'vm-102']))
    const down = vms.filter((vm) => !vm.running).map((vm) => vm.id)
    expect(down.length).toBeGreaterThan(0)

    // The VMs of both hosts are in the one plan that was carried out.
    const logs = await Promise.all([first, second].map(({ id }) => spine.events(id)))
    expect(logs.flatMap(writes)).toHaveLength(1)
    for (const incident of [first, second]) {
      // Somebody is still down: that is no mitigation.
      expect([incident.status, incident.category]).toEqual(['escalated', 'no_tool'])
      for (const vm of down) expect(incident.resolution).toContain(vm)
    }
  })

  test('a step that fails is a row, and the incident is not called resolved', async () => {
    await spine.lab.break('step_fails', 'host-ams-1')
    await approve(await spine.pendingApproval())
    const incident = await ended('host-ams-1')
    expect(incident).toMatchObject({ status: 'escalated', category: null })
    expect(incident.resolution).toContain('vm-115 did not come up on')
    const events = await spine.events(incident.id)
    expect(
      steps(events)
        .map((step) => step.split(' ')[1])
        .sort(),
    ).toEqual(['FAILED', 'OK', 'OK'])
    expect(events.flatMap((event) => (event.kind === 'verification' ? [event.metadata.outcome] : []))).toContain(
      'not_held',
    )
    expect(await complaints('step_fails', 'host-ams-1')).toEqual([])
  })

  test('what is stored of all this holds against the log', async () => {
    expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
    expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
  })
})

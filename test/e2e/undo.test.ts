import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import type { Approval } from '../../domain/approval.ts'
import type { PersonRole } from '../../domain/permissions.ts'
import type { FaultName } from '../../lab/state.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { runCli, tokenFile } from '../support/run-cli.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

// Wrong repairs of faults of the lab, taken back: what an outsider sees of the state is what it was
// before the write.

const dir = temporaryDirectory()
const state = join(dir.path, 'agent')
const units = join(dir.path, 'units')
const unit = 'web.service'
const idle = 'batch.service'
const host = 'host-osl-2'
const node = 'node-web-ams-1a'
let spine: Spine
let model: ScriptedModel
let agent: ChildProcess

beforeAll(async () => {
  model = await scriptedModel((_turn, { messages }) => {
    const [, plan = '[]'] =
      /PLAN (\[.*?\]) END/s.exec(String(messages.find(({ content }) => content?.includes('PLAN ['))?.content)) ?? []
    const calls = JSON.parse(plan.replaceAll('\\"', '"')) as { tool: string; arguments: object }[]
    const line = calls[messages.filter(({ role }) => role === 'assistant').length]
    return line ? [line as never] : 'It is done.'
  })
  spine = await startSpine({
    parts: ['lab', 'api'],
    // The lab's own alerts go nowhere: what is repaired here, wrongly, the test asks for.
    environment: {
      LLM_BASE_URL: model.url,
      LLM_MODEL: 'scripted',
      ALERT_URL: 'http://127.0.0.1:9/',
      ...ensureMeshKeys(dir.path),
    },
  })
  await enrolLab(spine.url, spine.tokens.admin, spine.lab)
  await startServices()
  await spine.start('worker')
  await spine.lab.break('bad_deploy', node)
})
afterAll(async () => {
  agent?.kill('SIGKILL')
  await spine?.stop()
  await model?.stop()
  dir.remove()
})

const asAdmin = () => ({ NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(spine.tokens.admin) })

/**
 * The agent of a host with a service manager of the test: one unit, which gets another run whenever
 * it is started.
 */
async function startServices(): Promise<void> {
  spawnSync('mkdir', ['-p', units])
  const shown = `Type=simple\nMainPID=100\nResult=success\nNRestarts=0\nExecMainStatus=0\nMemoryCurrent=[not set]\nTasksCurrent=3\nId=${unit}\nRequiredBy=\nBoundBy=\nConsistsOf=\nTriggeredBy=\nPropagatesStopTo=\nDescription=A web server\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=static\nFragmentPath=/etc/systemd/system/${unit}\nNeedDaemonReload=no\nStateChangeTimestamp=\nInvocationID=${'a'.repeat(32)}`
  writeFileSync(join(units, unit), shown)
  writeFileSync(join(units, idle), shown.replaceAll(unit, idle).replace('=active', '=inactive'))
  const program = join(units, 'systemctl')
  writeFileSync(
    program,
    `#!/bin/sh
cd ${units}
for last; do :; done
run=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
since="s/^StateChangeTimestamp=.*/StateChangeTimestamp=$(date +%s%N)/"
case "$*" in
  show*) shift 4; first=yes; for each; do
    [ $first = yes ] || echo; first=no
    if [ -f "$each" ]; then cat "$each"; echo; else echo "Id=$each"; echo "LoadState=not-found"; fi
  done ;;
  *stop*) sed -i -e 's/^ActiveState=.*/ActiveState=inactive/; s/^SubState=.*/SubState=dead/' -e "$since" $last ;;
  *) sed -i "s/^ActiveState=.*/ActiveState=active/; s/^SubState=.*/SubState=running/; s/^InvocationID=.*/InvocationID=$run/; $since" $last ;;
esac
`,
  )
  chmodSync(program, 0o755)
  const port = await freePort()
  const made = await runCli(
    [
      'mesh',
      'enroll',
      host,
      '--address',
      `http://127.0.0.1:${port}`,
      '--mode',
      'all',
      '--root',
      `${units}:rw`,
      '--json',
    ],
    asAdmin(),
  )
  await runCli([
    'mesh',
    'agent',
    'enroll',
    '--api',
    spine.url,
    '--token',
    JSON.parse(made.stdout).token,
    '--state',
    state,
  ])
  const options = {
    manifestFile: join(state, 'manifest.json'),
    rootKeyFile: join(state, 'root-key'),
    state,
    address: { host: '127.0.0.1', port },
    tls: null,
    acceptLostJournal: false,
    version: 'test',
    systemctl: [program],
  }
  const entry = fileURLToPath(new URL('../support/agent-process.ts', import.meta.url))
  agent = spawn(process.execPath, [entry, JSON.stringify(options)], { stdio: 'ignore' })
  await spine.until('the agent', async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok)
  await spine.post(`/devices/${host}/health`, {})
}

const systemctl = (verb: string, name: string) => spawnSync(join(units, 'systemctl'), [verb, name])
const serviceNow = (name: string) => /^ActiveState=(.*)$/m.exec(readFileSync(join(units, name), 'utf8'))?.[1]

const site = () => join(spine.labDirectory, 'nodes', node, 'site')
const git = (...words: string[]) => {
  const ran = spawnSync(
    'git',
    ['-c', 'safe.directory=*', '-c', 'user.name=x', '-c', 'user.email=x@y', '-C', site(), ...words],
    { encoding: 'utf8' },
  )
  if (ran.status !== 0) throw new Error(`git ${words[0]}: ${ran.stderr}`)
  return ran.stdout.trim()
}

type Vm = { id: string; running: boolean; host: string }
const vmOf = async (id: string) => {
  const { running, host: on } = await spine.get<Vm>(`/vms/${id}`)
  return { running, on }
}

type Written = { key: string; incidentId: string }

async function power(id: string, action: string): Promise<Written> {
  const dry = await spine.get<{ stateFingerprint: string }>(`/vms/${id}/${action}?dry_run=true`)
  const headers = { 'if-match': dry.stateFingerprint }
  const { body } = await spine.post(`/vms/${id}/${action}`, { reason: 'maintenance' }, { headers })
  expect(body).toMatchObject({ status: 'done' })
  return body as never
}

/** The agent does it, and a person has approved it. */
async function byAgent(calls: { tool: string; arguments: object }[]): Promise<Written> {
  const { body } = await spine.post('/agent', { question: `PLAN ${JSON.stringify(calls)} END` })
  const incidentId = String(body.incidentId ?? body.id)
  const asked = await spine.until('a question', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
      (each) => each.incidentId === incidentId,
    ),
  )
  const as = { token: spine.tokens.approver }
  const token = (await spine.post(`/approvals/${asked.id}/token`, { decision: 'approve' }, as)).body.token
  await spine.post(`/approvals/${asked.id}/decision`, { decision: 'approve', token }, as)
  const { stepKey, metadata } = await spine.until('the end of the write', async () =>
    (await spine.events(incidentId)).find(
      ({ kind, metadata: of }) => kind === 'tool_finished' && 'effect' in of && of.effect === 'write',
    ),
  )
  expect(metadata).toMatchObject({ outcome: 'done' })
  const key = String(stepKey?.replace('tool_finished', 'tool_started'))
  // The next question is taken up when this one has its answer.
  await spine.until('the answer', async () =>
    (await spine.incidents()).find(({ id, status }) => id === incidentId && ['resolved', 'escalated'].includes(status)),
  )
  return { key, incidentId }
}

const onHost = (tool: string, name: string) =>
  byAgent([
    { tool: 'get_host', arguments: { id: host } },
    { tool, arguments: { on: host, unit: name, reason: 'it may help' } },
  ])
const revert = () =>
  byAgent([
    { tool: 'get_node', arguments: { id: node } },
    {
      tool: 'git_revert',
      arguments: { on: node, path: site(), revision: git('rev-parse', 'HEAD'), reason: 'it may help' },
    },
  ])

const undo = (key: string, more: object = {}) =>
  spine.post(`/effects/${encodeURIComponent(key)}/undo`, { reason: 'it was the wrong one', ...more })

type Plan = { proposal_id: string; state: string; steps: { vm: string }[]; stateFingerprint: string }

/** Empties a host that nothing is wrong with, by a plan. */
async function empty(id: string): Promise<Written> {
  const asked = { intent: 'drain', host_ids: [id], use_rack_constraints: true }
  const plan = (await spine.post('/placement/proposals', asked)).body as Plan
  expect([plan.state, plan.steps.length > 0]).toEqual(['planned', true])
  const headers = { 'if-match': plan.stateFingerprint }
  const path = `/placement/proposals/${plan.proposal_id}/execute`
  const { body } = await spine.post(path, { reason: 'it looked ill' }, { headers })
  expect(body).toMatchObject({ status: 'done' })
  return body as never
}
const vmsOn = async (id: string) => {
  const { items } = await spine.get<{ items: Vm[] }>('/vms?limit=200')
  return items.filter((vm) => vm.host === id).map((vm) => [vm.id, vm.running])
}

type Wrong = {
  /** What an outsider sees of it, before the write and after its undo. */
  look(): Promise<unknown>
  write(): Promise<Written>
  /** What somebody else does to it after the write. */
  foreign(): Promise<unknown>
}
// Their hosts are not the agent's: two lanes that write to one host at once refuse each other.
const [stopped, started] = ['vm-112', 'vm-109']
const emptied = 'host-ams-2'
let moved = ''
const tree = async () => [git('rev-parse', 'HEAD^{tree}'), git('status', '--porcelain')]
const wrong: Record<string, Wrong> = {
  git_revert: {
    look: tree,
    write: revert,
    foreign: async () => git('commit', '--allow-empty', '--message=by somebody else'),
  },
  service_stop: {
    look: async () => serviceNow(unit),
    write: () => onHost('service_stop', unit),
    // The same state again, which somebody else left.
    foreign: async () => [systemctl('start', unit), systemctl('stop', unit)],
  },
  // Another run of it, by somebody else, is not the run that the write began.
  service_start: {
    look: async () => serviceNow(idle),
    write: () => onHost('service_start', idle),
    foreign: async () => systemctl('restart', idle),
  },
  vm_stop: { look: () => vmOf(stopped), write: () => power(stopped, 'stop'), foreign: () => power(stopped, 'start') },
  execute_migration: {
    look: () => vmsOn(emptied),
    write: () => empty(emptied),
    foreign: () => power(moved, 'stop'),
  },
  vm_start: { look: () => vmOf(started), write: () => power(started, 'start'), foreign: () => power(started, 'stop') },
}
const allFaults: [FaultName, string][] = [
  ['service_down', 'web-osl-1'],
  ['config_drift', 'web-osl-1'],
  ['disk_pressure', 'web-osl-1'],
]
// Every day one tool of each kind beside one fault; UNDO_FAULTS=3 plays all tools beside all.
const played = process.env.UNDO_FAULTS
const faults = allFaults.slice(0, Number(played ?? 1))
const ofKinds = ['git_revert', 'service_stop', 'vm_stop', 'execute_migration']

/**
 * Each of these tools. The agent takes up one question after the other; meanwhile a person writes
 * to VMs.
 */
async function ofEach(everyDay: readonly string[], each: (tool: string, of: Wrong) => Promise<void>): Promise<void> {
  const chosen = Object.entries(wrong).filter(([tool]) => played || everyDay.includes(tool))
  const lanes = Object.groupBy(chosen, ([tool]) => (/^(vm|execute)_/.test(tool) ? 'person' : 'agent'))
  await Promise.all(
    Object.values(lanes).map(async (lane = []) => {
      for (const [tool, of] of lane) await each(tool, of)
    }),
  )
}

/** The oracle's word on a fault, without figures that change by themselves. */
async function oracle(fault: FaultName, target: string) {
  const { checks } = await spine.lab.oracle(fault, target)
  return checks.map(({ name, ok }) => `${name}: ${ok}`)
}

test('an undo restores the state before the write, whatever else is broken, and once', async () => {
  if (played) await power(started, 'stop')
  let [equal, all] = [0, 0]
  for (const [fault, target] of faults) {
    await spine.lab.break(fault, target)
    const before = await oracle(fault, target)
    await ofEach(ofKinds, async (tool, { look, write }) => {
      const seen = await look()
      const { key } = await write()
      expect([tool, await look()]).not.toEqual([tool, seen])
      expect([tool, (await undo(key)).body]).toMatchObject([tool, { status: 'done' }])
      all += 1
      if (JSON.stringify(await look()) === JSON.stringify(seen)) equal += 1
      expect([tool, (await undo(key)).body]).toMatchObject([tool, { code: 'UNDONE_ALREADY' }])
    })
    expect(await oracle(fault, target)).toEqual(before)
    await spine.lab.heal(fault)
  }
  console.log(`undo, ${faults.length} of ${allFaults.length} faults: ${equal} of ${all} as before the write`)
  expect(equal).toBe(all)
})

test('no undo overwrites a later change of others: the refusal names the change, and is in the log', async () => {
  systemctl('start', unit)
  await ofEach(['git_revert', 'service_stop', 'vm_stop'], async (tool, { look, write, foreign }) => {
    const [[vm] = []] = await vmsOn(emptied)
    moved = String(vm)
    const { key, incidentId } = await write()
    await foreign()
    const theirs = await look()
    const refused = await undo(key)
    console.log(`${tool}: ${refused.body.detail}`)
    expect([tool, refused.status, refused.body.code]).toEqual([tool, 409, 'UNDO_MOVED_ON'])
    expect(await look()).toEqual(theirs)
    const rows = (await spine.events(incidentId)).filter(({ kind }) => kind === 'noted')
    expect(rows.at(-1)).toMatchObject({ metadata: { code: 'undo_refused', write: key } })
  })
})

test('at the terminal a person sees the effect of an undo, does it, and is refused the second time', async () => {
  const vm = 'vm-106'
  const { incidentId } = await power(vm, 'stop')
  const at = (...args: string[]) => runCli(['undo', incidentId, ...args], asAdmin())
  const dry = await at('--dry-run')
  expect([dry.code, (await vmOf(vm)).running]).toEqual([0, false])
  expect(dry.stdout).toMatch(/would be undone by vm_start: id vm-106\n.*as the write left it/)
  const unsaid = await at()
  expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining('--reason')])
  const done = await at('--reason', 'the wrong VM', '--json')
  expect([JSON.parse(done.stdout).status, (await vmOf(vm)).running]).toEqual(['done', true])
  const again = await at('--reason', 'once more')
  expect([again.code, again.stderr]).toEqual([5, expect.stringMatching(/inc_\w+ undid this write/)])
})

async function personOf(name: string, role: PersonRole): Promise<string> {
  return await createToken(spine.db, { name, role, operatorId: await ensureOperator(spine.db, name, role) })
}

async function approve(id: string, token: string) {
  const minted = await spine.post(`/approvals/${id}/token`, { decision: 'approve' }, { token })
  if (minted.status >= 300) return minted
  const body = { decision: 'approve', token: minted.body.token }
  return await spine.post(`/approvals/${id}/decision`, body, { token })
}

/** A VM is stopped by an admin; this person asks for the way back, which waits for another. */
async function askedBy(vm: string, token: string): Promise<string> {
  const { key } = await power(vm, 'stop')
  const path = `/effects/${encodeURIComponent(key)}/undo`
  const { body } = await spine.post(path, { reason: 'it was the wrong one' }, { token })
  expect(body).toMatchObject({ status: 'awaiting_approval' })
  expect((await vmOf(vm)).running).toBe(false)
  return String(body.approvalId)
}

test('an undo that its person may not decide waits for another person who may', async () => {
  const [olga, ben] = [await personOf('olga', 'operator'), await personOf('ben', 'approver')]
  const id = await askedBy('vm-107', olga)
  expect((await approve(id, olga)).status).toBe(403)
  expect((await vmOf('vm-107')).running).toBe(false)
  expect((await approve(id, ben)).status).toBe(200)
  await spine.until('the VM to run again', async () => (await vmOf('vm-107')).running)
})

test('if the site requires two people for an undo, the person who asked counts as one of them', async () => {
  const [anna, ben] = [await personOf('anna', 'approver'), await personOf('ben', 'approver')]
  await spine.owner
    .insertInto('platformConfig')
    .values({ key: 'approval.required.vm_start', value: '2' } as never)
    .execute()
  const id = await askedBy('vm-108', anna)
  await approve(id, anna)
  const approval = await spine.get<Approval>(`/approvals/${id}`)
  expect(approval).toMatchObject({ status: 'pending', approvals: 1, required: 2 })
  expect((await vmOf('vm-108')).running).toBe(false)
  expect((await approve(id, ben)).status).toBe(200)
  await spine.until('the VM to run again', async () => (await vmOf('vm-108')).running)
})

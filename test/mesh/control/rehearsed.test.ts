import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parseRehearsal } from '../../../domain/format-approval.ts'
import { announced } from '../../support/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { prepared, realAgent, usedApproval, useMeshApi } from '../../support/mesh-api.ts'

// Through the whole path: the registry's tool, the core API over HTTP, the agent as a separate
// process.

const api = useMeshApi()
const place = temporaryDirectory()
const on = 'node-osl-1'
let child: ChildProcess
let agentPid = 0

/** As if it were the program: it says with which words it was started. */
const rsync = '#!/bin/sh\necho "rsync got $*"\n[ "$1" = --dry-run ] || touch "$(dirname "$0")/../really"\n'

beforeAll(async () => {
  chmodSync(place.path, 0o777)
  child = spawn('sleep', ['300'], { stdio: 'ignore' })
  const terms = { capabilities: [], roots: [{ path: place.path, writable: true }] }
  agentPid = (await realAgent(api, on, { terms }, { rsync })).pid
})
afterAll(() => {
  child.kill('SIGKILL')
  place.remove()
})

async function card(tool: string, args: Record<string, unknown>) {
  const found = await prepared(api, tool, { on, reason: 'because it must be', ...args })
  const { lines, untried } = parseRehearsal(found?.dryRun.details ?? {}) ?? { lines: [], untried: [] }
  return { found, said: lines.join('\n'), untried: untried.join('\n') }
}

test("a command is tried with its program's own dry-run option, and the card shows the output", async () => {
  const { found, said } = await card('exec', { argv: ['rsync', '-a', '/srv/a/', '/srv/b/'] })
  expect(found?.dryRun.possible).toBe(true)
  expect(said).toMatch(
    /^rsync --dry-run --itemize-changes -a -- \/srv\/a\/ \/srv\/b\/ prints:\n {2}rsync got --dry-run /m,
  )
  expect(said).toMatch(/^program rsync: \/usr\/local\/sbin\/rsync, /m)
})

test('a command that could not be tried has no dry run, and the reads about it are shown', async () => {
  const { found, said, untried } = await card('shell_eval', { command: `make -C ${place.path} all` })
  expect(found?.dryRun.possible).toBe(false)
  expect(said).toMatch(/^runs as user /m)
  expect(untried).toContain('make was not tried: no way is known to try make without changes.')
  expect(found?.dryRun.details.rehearsal).not.toHaveProperty('rests_on')
})

test('a write is asked about again if the state on the card has changed', async () => {
  const at = join(place.path, 'old')
  mkdirSync(at)
  writeFileSync(join(at, 'a'), '1')
  const args = { argv: ['rm', '-r', at] }
  const before = await card('exec', args)
  expect(before.said).toContain('would be removed: 1 files, 1 directories, 1 bytes')
  expect((await card('exec', args)).found?.stateFingerprint).toBe(before.found?.stateFingerprint)
  writeFileSync(join(at, 'b'), 'somebody needs this')
  const id = await claimedIncident(api.db)
  const identity = { on, ...args }
  const key = await announced(api.db, id, 'exec', identity, await usedApproval(api, id, 'exec', identity))
  const answer = await api.post(`/devices/${on}/calls`, {
    body: { capability: 'shell.exec', args },
    headers: { 'if-match': String(before.found?.stateFingerprint) },
    key,
    as: api.tokens.agent,
  })
  expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
  expect(readFileSync(join(at, 'b'), 'utf8')).toBe('somebody needs this')
})

test('a read is not rehearsed', async () => {
  const { found } = await card('exec', { argv: ['uptime'] })
  expect(found?.dryRun.details).not.toHaveProperty('rehearsal')
})

test('before a process is signalled the card names it, and another process under its number is refused', async () => {
  const { pid = 0 } = child
  const asked = (pid: number) => ({ on, reason: 'because', pid, start_time: startTime(pid) })
  const { said } = await card('proc_kill', asked(pid))
  expect(said).toContain(`process ${pid} (sleep) of user `)
  expect(said).toMatch(/^started: .* UTC\ncommand line: sleep 300\nservice: /m)
  const other = prepared(api, 'proc_kill', { ...asked(pid), start_time: '1' })
  await expect(other).rejects.toThrow(`${pid} is another process now`)
  await expect(prepared(api, 'proc_kill', asked(agentPid))).rejects.toThrow(`${agentPid} is the agent itself`)
})

const startTime = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19] ?? ''

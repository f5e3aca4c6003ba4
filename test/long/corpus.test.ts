import { spawnSync } from 'node:child_process'
import { chownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findConfinement } from '../../mesh/agent/confine.ts'
import { judgeCommand } from '../../safety/command/judge.ts'
import type { ReadSight } from '../../safety/command/observe.ts'
import { loadSql } from '../../safety/sql/inspect.ts'
import {
  changes,
  commands,
  own,
  ownSecret,
  picture,
  ruled,
  stateOf,
  throwAwayRoot,
  unexplained,
} from '../mesh/agent/corpus.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { freshSeed } from '../support/random-cases.ts'
import { aManifest, startAgent } from '../support/running-agent.ts'

// One read after the other, so that what a read would change is seen right after it: an eighth of
// the corpus, the others in other runs, or all of it with CORPUS_PARTS=1. Bounded:
// test/mesh/agent/corpus.
const parts = Number(process.env.CORPUS_PARTS ?? 8)

const uid = 65_534
const asRoot = process.getuid?.() === 0
let place: ReturnType<typeof temporaryDirectory>
beforeAll(async () => {
  await loadSql()
  place = temporaryDirectory()
})
afterAll(() => place.remove())

/** The bytes of all its files, in order. */
function journalOf(state: string): Buffer {
  const directory = join(state, 'journal')
  return Buffer.concat(
    readdirSync(directory)
      .sort()
      .map((name) => readFileSync(join(directory, name))),
  )
}

/**
 * What stands in the journal after a call besides what stood there before: the requests of its
 * entries. Null: something else changed.
 */
function addedBy(before: Buffer, after: Buffer): (string | undefined)[] | null {
  if (!after.subarray(0, before.length).equals(before)) return null
  const lines = after.subarray(before.length).toString('utf8').split('\n').filter(Boolean)
  return lines.map((line) => (JSON.parse(line) as { request_id?: string }).request_id)
}

test("no sandboxed read of the corpus changes the device's journal, its keys or its state", async () => {
  const agent = await startAgent(own, {
    ...(asRoot && { uid }),
    manifest: aManifest(own, { limits: { timeout_seconds: 3 } }),
  })
  const root = throwAwayRoot(uid, join(place.path, 'confined'))
  const refresh = join(agent.state, 'refresh.json')
  writeFileSync(refresh, `{"token":"${ownSecret}"}`)
  if (asRoot) chownSync(refresh, uid, uid)
  try {
    const { signature } = JSON.parse(readFileSync(agent.manifestFile, 'utf8')) as { signature: string }
    const secrets = [ownSecret, readFileSync(join(agent.state, 'root-key'), 'utf8').trim(), signature]
    const stateBefore = stateOf(agent.state)
    const rootBefore = picture(root)
    const reads = commands.filter((text) => ruled(text).ok).filter((_, at) => (at + (freshSeed ?? 0)) % parts === 0)
    const answered = new Set<string>()
    const said = new Map<string, number>()
    const odd: string[] = []
    let last = 'no hash yet'
    for (const text of reads) {
      const before = journalOf(agent.state)
      const { answer } = await agent.call('shell.eval', { text, cwd: root })
      const added = addedBy(before, journalOf(agent.state))
      if (added === null || added.length === 0 || added.some((id) => id !== answer.request_id))
        odd.push(`journal: ${text}`)
      if (changes(stateBefore, stateOf(agent.state)).length > 0) odd.push(`state: ${text}`)
      const shown = JSON.stringify([answer.result, answer.error])
      // Nor does it see the chain of the journal as it stood when it ran.
      if ([...secrets, last].some((secret) => shown.includes(secret))) odd.push(`seen: ${text}`)
      last = answer.audit_hash ?? last
      answered.add(`${answer.request_id} ${answer.audit_hash}`)
      const word = answer.ok ? answer.approval_status : (answer.error?.code ?? '')
      said.set(word, (said.get(word) ?? 0) + 1)
    }
    expect(odd).toEqual([])
    expect(unexplained(agent.state, answered)).toEqual([])
    expect(changes(rootBefore, picture(root))).toEqual([])
    const ran = said.get('auto_approved') ?? 0
    expect(ran).toBeGreaterThan(600 / parts)
    // Some take longer than three seconds, and what a program obeys here may ask.
    expect(
      [...said.keys()].filter((word) => !['auto_approved', 'timeout', 'approval_required'].includes(word)),
    ).toEqual([])
    const counts = [...said].map(([word, count]) => `${count} ${word}`).join(', ')
    console.log(
      `of ${commands.length} commands of the corpus ${reads.length} are reads, played one by one: ${counts}; journal, keys and state untouched by each`,
    )
  } finally {
    await agent.stop()
  }
}, 1_800_000)

const probe = `for path; do
  if [ -d "$path" ]; then ls -A "$path" 2>/dev/null; else head -c 1 "$path" 2>/dev/null; fi
  : 2>/dev/null > "$path/new" && echo wrote
done
exit 0`

test('in every sandbox of a read of the corpus, the journal, the keys and the state can be neither read nor written', async () => {
  const state = join(throwAwayRoot(uid, join(place.path, 'seen')), 'srv/agent')
  for (const name of ['journal', 'rehearsals']) spawnSync('mkdir', ['-p', join(state, name)])
  const files = ['journal/000000001.jsonl', 'root-key', 'refresh.json', 'manifest.json']
  for (const name of files) writeFileSync(join(state, name), ownSecret)
  if (asRoot) spawnSync('chown', ['-R', `${uid}:${uid}`, state])
  const kinds = new Map<string, readonly ReadSight[]>()
  for (const text of commands) {
    const { verdict, sees } = judgeCommand(text, { knownHosts: new Set(), directory: '/' })
    if (verdict === 'run') kinds.set(sees.join(' '), sees)
  }
  expect(kinds.size).toBeGreaterThan(2)
  const before = picture(state)
  const confinement = await findConfinement(undefined, { paths: [state], rehearsals: join(state, 'rehearsals') })
  const paths = [state, ...['journal', ...files].map((name) => join(state, name))]
  const heard: string[] = []
  const show = ([program, ...args]: readonly string[]) =>
    spawnSync(program ?? '', args, { encoding: 'utf8', cwd: '/' }).stdout.trim()
  try {
    for (const [name, sees] of kinds) {
      if (!confinement.canShow(sees)) continue
      const wrapped = await confinement.wrap(['/bin/sh', '-c', probe, 'sh', ...paths], { cwd: '/', sees })
      const shown = show(wrapped)
      if (shown !== '') heard.push(`${name}: ${shown}`)
    }
    expect([confinement.sandbox === 'none', heard]).toEqual([false, []])
    expect(changes(before, picture(state))).toEqual([])
    // Without a sandbox the same probe reads all of it.
    expect(show(['/bin/sh', '-c', probe, 'sh', ...paths])).toContain('refresh.json')
  } finally {
    confinement.close()
  }
})

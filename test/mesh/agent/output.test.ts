import { appendFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { CapabilityAnswer, JournalEntry } from '../../../domain/mesh.ts'
import { auditJournal, entriesAfter, verifyChain } from '../../../mesh/agent/chain.ts'
import { type Journal, openJournal } from '../../../mesh/agent/journal.ts'
import { openNonces } from '../../../mesh/agent/verify-request.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { aManifest, inSeconds, keys, type Running, startAgent } from '../../support/running-agent.ts'

describe('output', () => {
  describe('audit', () => {
    const own = keys()
    let agent: Running
    beforeAll(async () => {
      agent = await startAgent(own)
    })
    afterAll(() => agent.stop())

    test('each answer names the entry of the journal that tells it, refusals too', async () => {
      const answers = [
        await agent.call('shell.exec', { argv: ['uptime'] }),
        await agent.call('shell.exec', { argv: ['touch', '/tmp/x'] }),
        await agent.granted('shell.exec', { argv: ['true'] }),
      ].map(({ answer }) => answer)
      const audited = auditJournal(agent.state)
      expect(audited.ok).toBe(true)
      if (!audited.ok) return
      expect(answers.map(({ audit_hash }) => audited.byHash.get(audit_hash ?? ''))).toMatchObject([
        { kind: 'done', requestId: answers[0]?.request_id },
        { kind: 'refused', requestId: answers[1]?.request_id },
        { kind: 'done', requestId: answers[2]?.request_id },
      ])
      expect(audited.head).toBe((await agent.health()).journal?.head)
    })

    test('a journal that somebody has changed does not verify', async () => {
      await agent.granted('shell.exec', { argv: ['true', 'before'] })
      const segment = join(agent.state, 'journal', readdirSync(join(agent.state, 'journal')).sort()[0] as string)
      writeFileSync(segment, readFileSync(segment, 'utf8').replace('true before', 'true after!'))
      expect(auditJournal(agent.state)).toMatchObject({ ok: false, reason: expect.stringContaining('entry') })
    })
  })

  describe('entries', () => {
    let place: ReturnType<typeof temporaryDirectory>
    let journal: Journal
    beforeAll(() => {
      place = temporaryDirectory()
      journal = openJournal(place.path, { segmentBytes: 1_000, segmentsKept: 3 })
    })
    afterAll(() => {
      journal.close()
      place.remove()
    })

    function all(from = 0): JournalEntry[] {
      const entries: JournalEntry[] = []
      for (let pages = 0; pages < 100; pages += 1) {
        const page = entriesAfter(place.path, entries.at(-1)?.n ?? from)
        if (page.entries.length === 0) return entries
        entries.push(...page.entries)
      }
      throw new Error('it never ends')
    }
    const write = (count: number) => {
      for (let n = 0; n < count; n += 1) journal.append({ kind: 'started', version: '1', boot: 'b' })
    }

    test('a journal of several files is told from the first entry to the last, each with its hash', () => {
      expect(entriesAfter(place.path, 0).entries).toEqual([])
      write(12)
      const entries = all()
      expect(entries.map(({ n }) => n)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
      expect(entries.at(-1)?.hash).toBe(journal.head())
      expect(all(7).map(({ n }) => n)).toEqual([8, 9, 10, 11, 12])
    })

    test('what is pruned is not told, and the oldest that is left is named', () => {
      write(60)
      const entries = all()
      const { first } = entriesAfter(place.path, 0)
      expect(first).toBeGreaterThan(1)
      expect(entries[0]?.n).toBe(first)
      expect(entries.at(-1)).toMatchObject({ n: journal.entries(), hash: journal.head() })
      expect(entries.map(({ n }) => n)).toEqual(entries.map((_, index) => first + index))
    })
  })

  describe('output', () => {
    const own = keys()
    const outputBytes = 100_000
    let agent: Running
    let place: ReturnType<typeof temporaryDirectory>
    beforeAll(async () => {
      const limits = { output_bytes: outputBytes, timeout_seconds: 120, cpu_seconds: 30, memory_mib: 200 }
      agent = await startAgent(own, { manifest: aManifest(own, { limits }) })
      place = temporaryDirectory()
    })
    afterAll(async () => {
      await agent.stop()
      place.remove()
    })

    const run = async (text: string, changes: Record<string, unknown> = {}): Promise<CapabilityAnswer> =>
      (await agent.granted('shell.eval', { text }, changes)).answer
    const stdout = (answer: CapabilityAnswer) => answer.result?.stdout as string

    /** Everything that runs with these words on its command line. */
    function running(words: string): number[] {
      return readdirSync('/proc')
        .map(Number)
        .filter((pid) => {
          if (!Number.isInteger(pid)) return false
          try {
            return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').includes(words)
          } catch {
            return false
          }
        })
    }

    test('of 100 MB what fits is kept, and the rest is not waited for', async () => {
      const answer = await run('case 1 in 1) head -c 100000000 /dev/zero | tr "\\0" x;; esac; echo end')
      expect(answer).toMatchObject({ ok: true, truncated: true })
      expect(stdout(answer)).toBe('x'.repeat(outputBytes))
    })

    test('output without an end is cut off, and its process is gone', async () => {
      const mark = `endless-${Date.now()}`
      const answer = await run(`case 1 in 1) yes ${mark};; esac`)
      expect(answer).toMatchObject({ ok: true, truncated: true })
      expect(stdout(answer).length).toBe(outputBytes)
      expect(running(mark)).toEqual([])
    })

    test('binary output is text by the time it leaves the device', async () => {
      const bytes = Buffer.alloc(4_096, 0).map((_, at) => at % 256)
      writeFileSync(join(place.path, 'binary'), bytes)
      const answer = await run(`cat ${join(place.path, 'binary')}`)
      expect(answer.ok).toBe(true)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
      expect(stdout(answer)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
      expect(stdout(answer)).toContain('ABCDEFG')
      expect(stdout(answer).isWellFormed()).toBe(true)
    })

    test.each([
      ['colours', String.raw`\033[31mred\033[0m`, 'red'],
      ['a title of the window', String.raw`\033]0;owned\007plain`, 'plain'],
      ['a cleared screen', String.raw`a\033[2J\033[Hb`, 'ab'],
      ['a bell and a backspace', String.raw`a\007b\010c`, 'abc'],
      ['a byte that is no UTF-8', String.raw`a\377b`, 'a\ufffdb'],
      ['half a character', String.raw`a\303`, 'a\ufffd'],
      ['text turned around', String.raw`a\342\200\256b`, 'ab'],
    ])('%s in the output does nothing to its reader', async (_, printed, plain) => {
      expect(stdout(await run(`printf '${printed}'`))).toBe(plain)
    })

    test('an exit code that is not zero is an answer', async () => {
      expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({
        ok: true,
        result: { exit_code: 3, stdout: 'out\n', stderr: 'err\n' },
      })
      const missing = await agent.granted('shell.exec', { argv: ['no-such-program'] })
      expect(missing.answer).toMatchObject({
        ok: true,
        result: { exit_code: 127, stderr: expect.stringContaining('not found') },
      })
    })

    test('a directory that is not there is said to be the reason', async () => {
      const { answer } = await agent.call('shell.exec', { argv: ['ls'], cwd: join(place.path, 'nowhere') })
      expect(answer).toMatchObject({
        ok: false,
        error: { code: 'not_found', message: expect.stringContaining('nowhere') },
      })
    })

    test('a query that only reads is known to, though its parser is loaded late', async () => {
      const read = await agent.call('shell.exec', { argv: ['psql', '-c', 'select 1'] })
      expect(read.answer.approval_status).toBe('auto_approved')
      const write = await agent.call('shell.eval', { text: `p'sq'l -c 'drop table x'` })
      expect(write.answer.error?.code).toBe('approval_required')
    })

    /** Who a commit of the command is by. */
    const gitIdentity = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL']

    test('an input is empty, and nothing of the agent is in the environment', async () => {
      const names = stdout(await run('cat; env'))
        .split('\n')
        .map((line) => line.split('=')[0])
      expect(names.filter((name) => name !== '').sort()).toEqual(
        [...gitIdentity, 'HOME', 'LANG', 'NIGHTSHIFT_OPERATION', 'PATH', 'PWD', 'SHLVL', '_'].sort(),
      )
    })

    test('at the deadline the whole group dies, also what ignores SIGTERM, and what was said is kept', async () => {
      const mark = `9${Date.now()}`
      const text = `trap '' TERM; echo begun; (trap '' TERM; sleep ${mark} & wait) & sleep ${mark}; sleep ${mark}`
      const answer = await run(text, { deadline: inSeconds(2) })
      expect(answer).toMatchObject({
        status: 'failed',
        ok: false,
        error: { code: 'timeout' },
        result: { stdout: 'begun\n', exit_code: null },
      })
      expect(running(mark)).toEqual([])
    })

    test('a child that left its group and its session dies at the deadline as well', async () => {
      const mark = `8${Date.now()}`
      const answer = await run(`setsid sleep ${mark} & setsid setsid sleep ${mark} & sleep ${mark}`, {
        deadline: inSeconds(2),
      })
      expect(answer.error?.code).toBe('timeout')
      await eventually('everything to be gone', () => running(mark).length === 0)
    })

    test('what stays in the group of a finished command ends with it', async () => {
      const mark = `7${Date.now()}`
      expect((await run(`sleep ${mark} & echo started`)).ok).toBe(true)
      await eventually('it to be gone', () => running(mark).length === 0)
    })

    test('more memory than the manifest allows ends it', async () => {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is bash
      const one = await run('x=$(head -c 400000000 /dev/zero | tr "\\0" x); echo ${#x}')
      expect(stdout(one)).not.toContain('400000000')
      // Each of these is small enough for itself. Bash does something after its `sleep`: it would otherwise replace itself with it,
      // and hold the memory for a moment only.
      const many = await run(
        'for i in 1 2 3 4; do (x=$(head -c 60000000 /dev/zero | tr "\\0" x); sleep 20; : kept) & done; wait',
        {
          deadline: inSeconds(40),
        },
      )
      expect(many).toMatchObject({ ok: false, error: { code: 'failed', message: expect.stringContaining('memory') } })
    })

    test('a command that burns its processor time ends', async () => {
      const brief = await startAgent(own, {
        manifest: aManifest(own, { limits: { cpu_seconds: 1, timeout_seconds: 100 } }),
      })
      try {
        const { answer } = await brief.granted('shell.exec', { argv: ['sh', '-c', 'while :; do :; done'] })
        expect(answer.result).toMatchObject({ exit_code: null, signal: expect.stringMatching(/SIGXCPU|SIGKILL/) })
      } finally {
        await brief.stop()
      }
    })

    test('the agent itself stays small through all of this', () => {
      expect(agent.residentMb()).toBeLessThan(150)
    })
  })
})

describe('journal', () => {
  let state: ReturnType<typeof temporaryDirectory>
  beforeEach(() => {
    state = temporaryDirectory()
  })
  afterEach(() => state.remove())

  const accepted = (n: number, effect: 'read' | 'write' = 'write') => ({
    kind: 'accepted' as const,
    request_id: `req_${String(n).padStart(24, '0')}`,
    key: `key-${n}`,
    digest: 'd',
    capability: 'shell.exec' as const,
    effect,
    approval: 'granted' as const,
    command: `touch ${n}`,
    grant: { id: `grt_${n}`, authority: 'apr_1', ends_ms: Date.now() + 60_000 },
    key_id: 'cp-1',
  })
  const done = (n: number) => ({
    kind: 'done' as const,
    request_id: `req_${String(n).padStart(24, '0')}`,
    key: `key-${n}`,
    answer: {
      request_id: `req_${String(n).padStart(24, '0')}`,
      device: 'web-1',
      status: 'done' as const,
      ok: true,
      result: { n },
      error: null,
      approval_status: 'granted' as const,
      cmd_executed: null,
      truncated: false,
      duration_ms: 1,
    },
  })

  async function written(count: number, options = {}): Promise<void> {
    const journal = openJournal(state.path, options)
    for (let n = 1; n <= count; n += 1) {
      journal.append(accepted(n))
      journal.append(done(n))
    }
    await journal.durable()
    journal.close()
  }
  const directory = () => join(state.path, 'journal')
  const segments = () => readdirSync(directory()).sort()
  const file = () => join(directory(), segments().at(-1) as string)

  test('what was done is known after a restart, with its answer; what was only accepted is open', async () => {
    await written(3)
    const before = openJournal(state.path)
    before.append(accepted(4))
    before.close()
    const journal = openJournal(state.path)
    expect(journal.lost()).toBeNull()
    expect(journal.entries()).toBe(7)
    const known = journal.index.ofKey('key-2')
    expect(known).toMatchObject({ state: 'done', effect: 'write' })
    expect(journal.answerAt(known?.answer?.place as never)).toMatchObject({ result: { n: 2 } })
    expect(journal.index.open().map(({ key }) => key)).toEqual(['key-4'])
    expect(journal.index.isUsedGrant('grt_4')).toBe(true)
    journal.close()
  })

  test('an unfinished last line is nothing that happened', async () => {
    await written(2)
    appendFileSync(file(), '{"n":5,"prev":"')
    const journal = openJournal(state.path)
    expect([journal.lost(), journal.entries()]).toEqual([null, 4])
    journal.append(accepted(3))
    journal.close()
    expect(verifyChain(directory())).toMatchObject({ ok: true, entries: 5, tornBytes: 0 })
  })

  test.each([
    ['an entry was changed', () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('touch 1', 'touch 9'))],
    [
      'an entry was taken out',
      () =>
        writeFileSync(
          file(),
          readFileSync(file(), 'utf8')
            .split('\n')
            .filter((_, at) => at !== 2)
            .join('\n'),
        ),
    ],
    ['the end was cut off', () => truncateSync(file(), readFileSync(file(), 'utf8').indexOf('\n', 400) + 1)],
    [
      'the last line was changed',
      () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('"n":3}', '"n":8}')),
    ],
    ['the journal is gone', () => rmSync(directory(), { recursive: true })],
    ['its head is gone', () => rmSync(join(state.path, 'head.json'))],
    ['its head is unreadable', () => writeFileSync(join(state.path, 'head.json'), 'x')],
    [
      'all is gone but the nonces',
      () => {
        rmSync(directory(), { recursive: true })
        rmSync(join(state.path, 'head.json'))
      },
    ],
  ])('when %s, the journal is lost until somebody accepts that, over restarts', async (_, harm) => {
    await written(3)
    openNonces(state.path, Date.now())
    harm()
    const first = openJournal(state.path)
    expect(first.lost()).not.toBeNull()
    expect(first.index.ofKey('key-1')).toBeNull()
    await first.durable()
    first.close()
    const second = openJournal(state.path)
    expect(second.lost()).not.toBeNull()
    second.append({ kind: 'loss_accepted' })
    expect(second.lost()).toBeNull()
    second.close()
    const third = openJournal(state.path)
    expect(third.lost()).toBeNull()
    third.close()
  })

  test('a full segment is followed by another in the same chain, and the oldest go with a word about it', async () => {
    await written(200, { segmentBytes: 4_000, segmentsKept: 4 })
    expect(segments().length).toBeLessThanOrEqual(5)
    const verified = verifyChain(directory())
    expect(verified).toMatchObject({ ok: true })
    expect(verified.ok && verified.first).toBeGreaterThan(1)
    const journal = openJournal(state.path)
    expect(journal.lost()).toBeNull()
    expect(journal.index.ofKey('key-1')).toBeNull()
    expect(journal.index.ofKey('key-200')).toMatchObject({ state: 'done' })
    journal.close()
    rmSync(join(directory(), segments()[0] as string))
    expect(verifyChain(directory())).toMatchObject({ ok: false, reason: expect.stringContaining('missing') })
  })

  test('entries that many wait for are on disk for all of them', async () => {
    const journal = openJournal(state.path, { segmentBytes: 2_000 })
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        journal.append(accepted(n))
        await journal.durable()
        journal.append(done(n))
      }),
    )
    await journal.durable()
    expect(JSON.parse(readFileSync(join(state.path, 'head.json'), 'utf8'))).toEqual({
      n: journal.entries(),
      hash: journal.head(),
    })
    journal.close()
    expect(verifyChain(directory())).toMatchObject({ ok: true })
  })

  test('a nonce is remembered over a restart, for as long as its request could come again', () => {
    const now = Date.now()
    const nonces = openNonces(state.path, now)
    expect(nonces.forgottenBeforeMs).toBe(now)
    nonces.remember('fresh', now, now)
    nonces.remember('old', now - 301_000, now)
    const again = openNonces(state.path, now)
    expect([again.has('fresh'), again.has('old'), again.forgottenBeforeMs]).toEqual([true, false, null])
  })
})

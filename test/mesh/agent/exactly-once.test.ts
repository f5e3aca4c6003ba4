import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { verifyChain } from '../../../mesh/agent/chain.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { aGranted, keys, type Running, startAgent } from '../../support/running-agent.ts'

/** 1,000 take a quarter of an hour. */
const rounds = Number(process.env.MESH_ROUNDS ?? 24)
const own = keys()

type Fate = 'fine' | 'answer lost' | 'three at once' | 'accepted' | 'running' | 'running a while' | 'done'
const fates: readonly Fate[] = [
  'fine',
  'answer lost',
  'three at once',
  'accepted',
  'running',
  'running a while',
  'done',
]

type Said = 'done' | 'indeterminate'

/** Asks for one effect through one fate, and then again until the device says what became of it. */
async function live(agent: Running, key: string, text: string, fate: Fate, laterMs: number): Promise<Said> {
  const ask = () => agent.post(aGranted(own, 'shell.eval', { text }, { idempotency_key: key }))
  if (fate === 'fine') await ask()
  else if (fate === 'three at once') await Promise.all([ask(), ask(), ask()])
  else if (fate === 'answer lost') {
    const body = JSON.stringify(aGranted(own, 'shell.eval', { text }, { idempotency_key: key }))
    await fetch(`${agent.url}/capability`, { method: 'POST', body, signal: AbortSignal.timeout(1 + laterMs) }).catch(
      () => null,
    )
  } else {
    const [kind, delay] = fate === 'running a while' ? ['running', laterMs] : [fate, 0]
    writeFileSync(join(agent.state, 'die-at'), `${kind} ${delay}`)
    const answer = await ask().catch(() => null)
    // It may have been faster than its death, which then comes all the same.
    if (fate !== 'running a while') expect(answer).toBeNull()
    await agent.gone()
    await agent.up()
  }
  const { answer } = await ask()
  if (answer.ok) return 'done'
  expect(answer.error?.code).toBe('indeterminate')
  return 'indeterminate'
}

test(
  `through ${rounds} calls with deaths at every state of the journal, lost answers and duplicates nothing is done twice, and everything is reported`,
  async () => {
    const place = temporaryDirectory()
    const counter = join(place.path, 'counter')
    const agent = await startAgent(own, { mortal: true })
    const said = new Map<string, { fate: Fate; said: Said }>()
    let seed = Number(process.env.MESH_SEED ?? 7)
    const draw = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((seed / 2_147_483_648) * below)
    }
    try {
      for (let round = 0; round < rounds; round += 1) {
        const key = `effect-${round}`
        const fate = fates[draw(fates.length)] as Fate
        said.set(key, { fate, said: await live(agent, key, `echo ${key} >> ${counter}`, fate, draw(60)) })
      }
      // What the journal says at the end is what it said all along.
      for (const [key, { said: before }] of said) {
        const text = `echo ${key} >> ${counter}`
        const { answer } = await agent.post(aGranted(own, 'shell.eval', { text }, { idempotency_key: key }))
        expect([key, answer.ok ? 'done' : answer.error?.code]).toEqual([key, before])
      }
    } finally {
      await agent.kill()
    }
    const times = new Map<string, number>()
    if (existsSync(counter)) {
      for (const key of readFileSync(counter, 'utf8').trim().split('\n')) times.set(key, (times.get(key) ?? 0) + 1)
    }
    const wrong: string[] = []
    for (const [key, { fate, said: word }] of said) {
      const count = times.get(key) ?? 0
      const isRight =
        word === 'done'
          ? count === 1
          : count <= 1 && fate !== 'fine' && fate !== 'done' && (fate !== 'accepted' || count === 0)
      if (!isRight) wrong.push(`${key}: ${fate}, ${word}, ${count} times`)
    }
    expect(wrong).toEqual([])
    expect([...times.keys()].filter((key) => !said.has(key))).toEqual([])
    // Each fate has been played, and deaths did leave something that nobody can tell.
    expect(new Set([...said.values()].map(({ fate }) => fate))).toEqual(new Set(fates))
    expect([...said.values()].filter(({ said }) => said === 'indeterminate').length).toBeGreaterThan(rounds / 10)
    expect(verifyChain(join(agent.state, 'journal'))).toMatchObject({ ok: true })
    place.remove()
    agent.remove()
  },
  60_000 + rounds * 6_000,
)

test('a read without an observed end runs again', async () => {
  const agent = await startAgent(own, { mortal: true })
  try {
    for (const kind of ['accepted', 'running', 'done']) {
      writeFileSync(join(agent.state, 'die-at'), `${kind} 0`)
      const key = { idempotency_key: `read-${kind}` }
      await expect(agent.call('shell.exec', { argv: ['uptime'] }, key)).rejects.toThrow()
      await agent.gone()
      await agent.up()
      expect((await agent.call('shell.exec', { argv: ['uptime'] }, key)).answer.ok).toBe(true)
    }
  } finally {
    await agent.stop()
  }
})

test('a process of a dead agent does not outlive the start of its successor', async () => {
  const agent = await startAgent(own, { mortal: true })
  /** Seconds that no other process of this machine sleeps: its name in the list of processes. */
  const mark = `9${randomInt(1_000_000, 9_999_999)}`
  const running = () =>
    execFileSync('ps', ['-eo', 'args='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(mark))
  try {
    writeFileSync(join(agent.state, 'die-at'), 'running 1000')
    const text = `trap '' TERM; (setsid sh -c 'sleep ${mark}; true') & sleep ${mark}; true`
    await expect(agent.granted('shell.eval', { text })).rejects.toThrow()
    await agent.gone()
    await agent.up()
    await eventually('all of it to be gone', () => running().length === 0)
  } finally {
    await agent.stop()
  }
})

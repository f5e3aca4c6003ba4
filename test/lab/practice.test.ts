import { expect, test } from '@jest/globals'
import { practiceCards, scorePractice } from '../../lab/practice.ts'
import { runCli } from '../support/run-cli.ts'

test('ten cards contain three traps, in another order each time, and no id tells which', () => {
  const cards = practiceCards(new Date())
  expect(cards).toHaveLength(10)
  expect(cards.filter(({ trap }) => trap !== null)).toHaveLength(3)
  expect(cards.map(({ approval }) => approval.id)).toEqual(cards.map((_, at) => `practice_${at + 1}`))
  const orders = new Set(
    Array.from({ length: 20 }, () =>
      practiceCards(new Date())
        .map(({ trap }) => trap !== null)
        .join(),
    ),
  )
  expect(orders.size).toBeGreaterThan(5)
})

test('a person who denies only the traps is right ten times, and a person who denies all approves no sound card', () => {
  const cards = practiceCards(new Date())
  const right = cards.map(({ trap }) => ({ decision: trap ? ('deny' as const) : ('approve' as const), seconds: 1 }))
  expect(scorePractice(cards, right)).toMatchObject({ traps: 3, caught: 3, sound: 7, approved: 7 })
  const wary = cards.map(() => ({ decision: 'deny' as const, seconds: 1 }))
  expect(scorePractice(cards, wary)).toMatchObject({ caught: 3, approved: 0 })
})

test('the terminal shows each card like a real one, takes one answer per line, and explains the traps at the end', async () => {
  const { code, stdout, stderr } = await runCli(['lab', '--practice'], {}, `what?\n${'deny\n'.repeat(10)}`)
  expect(code).toBe(0)
  expect(stderr).toContain('Write approve, deny, or quit.')
  expect(stderr).toContain('Question 10 of 10')
  expect(stderr.match(/^ *Undo$/gm)).toHaveLength(10)
  expect(stdout.match(/Trap: /g)).toHaveLength(3)
  expect(stdout).toMatch(/3 of 3 traps denied, 0 of 7 safe questions approved/)
  const left = await runCli(['lab', '--practice', '--json'], {}, 'approve\nquit\n')
  expect(JSON.parse(left.stdout).cards).toHaveLength(1)
})

import { expect, test } from '@jest/globals'
import { tellProof, tellStanding } from '../../domain/told-plan.ts'

const planned = { state: 'planned', migrations: 2, lowerBound: 2 } as const

test('no more is said of a number of migrations than is proved', () => {
  const certificate = { kind: 'certificate', k: 1, scale: 100, price: { '1/1': 3, '2/2': 5 } } as const
  expect(tellProof(planned, certificate)).toBe('2 migrations, and no plan needs fewer (certificate: k = 1, 2 prices)')
  expect(tellProof(planned, 'engine')).toBe("2 migrations, and no plan needs fewer (a solver's word, not checked)")
  expect(tellProof({ ...planned, lowerBound: 1 }, 'certificate')).toBe(
    '2 migrations; it takes at least 1 (certificate), whether fewer than 2 would do is not known',
  )
  expect(tellProof({ ...planned, lowerBound: 0 })).toBe('2 migrations; whether fewer would do is not known')
  // The bound is for a plan for all: of one that leaves some down it says nothing.
  expect(tellProof({ state: 'partial', migrations: 1, lowerBound: 1 }, 'certificate')).toBe('1 migration')
  expect(tellProof({})).toBe('')
})

test('what still stands is told by name, and what the plan made worse apart', () => {
  const loss = (outcomes: ('restarted' | 'moved' | 'not_found')[]) =>
    outcomes.map((outcome, index) => ({ name: `h${index + 1}`, outcome }))
  const before = loss(['restarted', 'restarted', 'not_found'])
  expect(tellStanding({ domain: 'host', before, after: loss(['restarted', 'moved', 'not_found']) })).toBe(
    'Should one more host die: all its VMs restart for 1 of 3 hosts; if it is h2, its VMs restart only after others have moved; ' +
      'if it is h3, no room for all its VMs was found. Worse than before the plan: h2.',
  )
  expect(tellStanding({ domain: 'rack', before, after: before })).toContain('No worse than before the plan.')
  expect(tellStanding({ domain: 'host', before, after: loss(['restarted', 'restarted', 'restarted']) })).toBe(
    'Should any one of 3 hosts die, all its VMs restart.',
  )
})

import { expect, test } from '@jest/globals'
import { formatApprovalEnd, parseRehearsal } from '../../domain/format-approval.ts'

test.each([
  ['expired', /nothing was changed/],
  ['denied', /nothing was changed/],
  ['withdrawn', /changed nothing/],
  ['approved', /has not started yet/],
  ['consumed', /the incident shows/],
] as const)('an approval that is %s says what happened on the platform', (status, words) => {
  expect(formatApprovalEnd({ status })).toMatch(words)
})

test('a waiting approval says nothing about the platform', () => {
  expect(formatApprovalEnd({ status: 'pending' })).toBeNull()
})

test('a rehearsal is read line by line: what was found, the diff, the checks, and what was not tried', () => {
  const rehearsal = {
    told: ['runs as user 7'],
    untried: ['make was not tried: no way is known.'],
    tried: false,
    diff: '-a\n+b\n',
    checks: [{ argv: ['nginx', '-t'], exit_code: 1, output: 'no\n' }],
    truncated: true,
  }
  expect(parseRehearsal({ rehearsal })).toEqual({
    lines: ['runs as user 7', '-a', '+b', 'check nginx -t ended with 1', '  no', 'The rest is left out.'],
    untried: ['make was not tried: no way is known.'],
  })
})

test('"nothing would change" is said only of what was tried in a copy', () => {
  expect(parseRehearsal({ rehearsal: { diff: '', checks: [], would_change: false } })?.lines).toEqual([
    'Tried in a copy: it would change nothing.',
  ])
  expect(parseRehearsal({ rehearsal: { told: [], untried: ['It was not tried.'] } })).toEqual({
    lines: [],
    untried: ['It was not tried.'],
  })
})

test('a missing rehearsal has its reason in a sentence, and an unknown form is shown as it is', () => {
  expect(parseRehearsal({ notRehearsed: 'it cannot be rehearsed' })).toEqual({
    lines: [],
    untried: ['No dry run: it cannot be rehearsed'],
  })
  expect(parseRehearsal({ steps: [] })).toBeNull()
  expect(parseRehearsal({ rehearsal: { told: 'not lines' } })).toBeNull()
})

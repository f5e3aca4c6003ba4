import { describe, expect, test } from '@jest/globals'
import { tellConsequences, tellSettled } from '../../domain/told-consequences.ts'

const approval = {
  tool: 'execute_migration',
  targets: [
    { kind: 'proposal' as const, id: 'prp_1' },
    ...['vm-1', 'vm-2', 'vm-3', 'vm-4'].map((id) => ({ kind: 'vm' as const, id })),
  ],
  dryRun: { possible: true, summary: 'start 4 VMs', details: {}, proof: { by: 'state' as const, text: 'they run' } },
  reversible: true,
  required: 1,
  approvals: 0,
  expiresAt: '2026-11-21T02:46:00.000000Z',
}
const told = (more: object = {}) => tellConsequences({ ...approval, ...more }, (iso) => iso.slice(11, 16))

describe('before a person decides, the card says what follows', () => {
  test('from yes: what runs on what, what proves it, and whether it can be reversed', () => {
    expect(told().approve).toBe(
      'The targets are read again. If they are unchanged, execute_migration runs at once on vm vm-1, vm vm-2, vm vm-3 and 1 more; otherwise you are asked again. Afterwards code checks whether it worked. It can be reversed.',
    )
  })

  test('from yes where two people must agree: nothing before the other has', () => {
    expect(told({ required: 2 }).approve).toMatch(/^Once another person approves, the targets are read again/)
    expect(told({ required: 3 }).approve).toMatch(/^Once 2 more approve, the targets/)
    expect(told({ required: 2, approvals: 1 }).approve).toMatch(/^The targets are read again/)
  })

  test('from yes where there was no dry run, no proof and no way back', () => {
    const dryRun = { possible: false, summary: 'reboot', details: {}, proof: { by: 'nothing', text: 'look' } }
    expect(told({ dryRun, reversible: false }).approve).toMatch(
      /It had no dry run: .* Afterwards nothing proves that it worked\. It cannot be undone\.$/,
    )
  })

  test('from no and from silence: nothing is changed', () => {
    expect(told().deny).toMatch(/^Nothing is changed\. The agent reads your reason/)
    expect(told().wait).toBe(
      'Nothing is changed. The question expires at 02:46, and the incident is escalated to people.',
    )
  })
})

test.each([
  ['expired', /nothing was changed/],
  ['denied', /nothing was changed/],
  ['withdrawn', /nothing was changed/],
  ['approved', /has not started yet/],
  ['consumed', /the incident shows/],
] as const)('an approval that is %s says what became of the platform', (status, words) => {
  expect(tellSettled({ status })).toMatch(words)
})

test('an approval that waits says nothing of the kind', () => {
  expect(tellSettled({ status: 'pending' })).toBeNull()
})

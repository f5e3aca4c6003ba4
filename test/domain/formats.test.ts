import { execFileSync } from 'node:child_process'
import { describe, expect, test } from '@jest/globals'
import { formatCsv, formatOvertaken, formatPlanProof, formatStanding } from '../../domain/format.ts'
import { formatApprovalEnd, formatConsequences, parseRehearsal } from '../../domain/format-approval.ts'
import { planOfDryRun } from '../../domain/placement.ts'
import { changes, lines } from '../../web/differences.ts'

describe('formats', () => {
  describe('format', () => {
    const at = '2026-11-22T01:05:27.120000Z'

    test('a cell of a table that a spreadsheet would run is text, and quotes, commas and lines stay in their cell', () => {
      const formulas = ['=1+1', '+1', '-1', '@sum', '\t=1']
      expect(formatCsv([formulas])).toBe("'=1+1,'+1,'-1,'@sum,'\t=1\r\n")
      expect(formatCsv([['a"b', 'c,d', 'e\nf', null, -0.5]])).toBe('"a""b","c,d","e\nf",,-0.5\r\n')
    })

    /** The zone of a process is fixed when it begins. */
    function formatIn(timeZone: string, iso: string, zone: 'local' | 'utc'): string {
      const code = `import { formatMoment } from './domain/format.ts'; console.log(formatMoment('${iso}', '${zone}'))`
      const env = { ...process.env, TZ: timeZone }
      return execFileSync(process.execPath, ['--input-type=module', '--eval', code], { env, encoding: 'utf8' }).trim()
    }

    test.each([
      ['America/New_York', at, '2026-11-21 20:05:27 -05:00'],
      ['America/New_York', '2026-07-01T00:00:00Z', '2026-06-30 20:00:00 -04:00'],
      ['Asia/Kolkata', at, '2026-11-22 06:35:27 +05:30'],
      ['Europe/Oslo', at, '2026-11-22 02:05:27 +01:00'],
      ['UTC', at, '2026-11-22 01:05:27 UTC'],
    ])('a time in %s has its offset, the one of its own season', (timeZone, iso, text) => {
      expect(formatIn(timeZone, iso, 'local')).toBe(text)
    })

    test('a time in UTC is the same everywhere', () => {
      expect(formatIn('Asia/Kolkata', at, 'utc')).toBe('2026-11-22 01:05:27 UTC')
    })
  })

  describe('format plan', () => {
    const planned = { state: 'planned', migrations: 2, lowerBound: 2 } as const

    test('no more is said of a number of migrations than is proved', () => {
      const certificate = { kind: 'certificate', k: 1, scale: 100, price: { '1/1': 3, '2/2': 5 } } as const
      expect(formatPlanProof(planned, certificate)).toBe(
        '2 migrations, and no plan needs fewer (certificate: k = 1, 2 prices)',
      )
      expect(formatPlanProof(planned, 'engine')).toBe(
        "2 migrations, and no plan needs fewer (a solver's word, not checked)",
      )
      expect(formatPlanProof({ ...planned, lowerBound: 1 }, 'certificate')).toBe(
        '2 migrations; it takes at least 1 (certificate), whether fewer than 2 would do is not known',
      )
      expect(formatPlanProof({ ...planned, lowerBound: 0 })).toBe('2 migrations; whether fewer would do is not known')
      // The bound is for a plan for all: of one that leaves some down it says nothing.
      expect(formatPlanProof({ state: 'partial', migrations: 1, lowerBound: 1 }, 'certificate')).toBe('1 migration')
      expect(formatPlanProof({})).toBe('')
    })

    test('what still stands is told by name, and what the plan made worse apart', () => {
      const loss = (outcomes: ('restarted' | 'moved' | 'not_found')[]) =>
        outcomes.map((outcome, index) => ({ name: `h${index + 1}`, outcome }))
      const before = loss(['restarted', 'restarted', 'not_found'])
      expect(formatStanding({ domain: 'host', before, after: loss(['restarted', 'moved', 'not_found']) })).toBe(
        'Should one more host fail: all its VMs restart for 1 of 3 hosts; if it is h2, its VMs restart only after others have moved; ' +
          'if it is h3, no room for all its VMs was found. Worse than before the plan: h2.',
      )
      expect(formatStanding({ domain: 'rack', before, after: before })).toContain('No worse than before the plan.')
      expect(formatStanding({ domain: 'host', before, after: loss(['restarted', 'restarted', 'restarted']) })).toBe(
        'Should any one of 3 hosts fail, all its VMs restart.',
      )
    })

    test('of those that stay down while less important VMs get a place, the most important is named first', () => {
      const down = (vm: string, priority: number, overtakenBy?: string[]) => ({
        ...{ vm, reason: 'rack spread of g', priority },
        ...(overtakenBy ? { overtakenBy } : {}),
      })
      expect(formatOvertaken([down('a', 0), down('b', 80, ['c']), down('d', 100, ['c'])])).toEqual([
        'd (priority 100) and 1 more stay down while VMs of lower priority get a place',
      ])
      expect(formatOvertaken([down('b', 80, ['c'])])).toEqual([
        'b (priority 80) stays down while VMs of lower priority get a place',
      ])
      expect(formatOvertaken([{ vm: 'a', reason: 'no room' }])).toEqual([])
    })

    test('the plan of an approval is read with what 0.1.0 stored, and with what is stored since', () => {
      const step = { step: 1, action: 'start', vm: 'a', from: 'x', to: 'h', needs: [], wave: 1 }
      const old = planOfDryRun({ steps: [step], state: 'partial', unplaced: [{ vm: 'b', reason: 'no room' }] })
      expect(old).toMatchObject({ steps: [step], unplaced: [{ vm: 'b', reason: 'no room' }] })
      const now = {
        steps: [{ ...step, priority: 100, haGroup: 'g' }],
        unplaced: [{ vm: 'b', reason: 'rack spread of g', priority: 80, haGroup: null, overtakenBy: ['a'] }],
      }
      expect(planOfDryRun(now)).toMatchObject(now)
    })
  })

  describe('format approval', () => {
    const approval = {
      tool: 'execute_migration',
      targets: [
        { kind: 'proposal' as const, id: 'prp_1' },
        ...['vm-1', 'vm-2', 'vm-3', 'vm-4'].map((id) => ({ kind: 'vm' as const, id })),
      ],
      dryRun: {
        possible: true,
        summary: 'start 4 VMs',
        details: {},
        proof: { by: 'state' as const, text: 'they run' },
      },
      reversible: true,
      required: 1,
      approvals: 0,
      expiresAt: '2026-11-21T02:46:00.000000Z',
    }
    const told = (more: object = {}) => formatConsequences({ ...approval, ...more }, (iso) => iso.slice(11, 16))

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
        expect(told().wait).toBe('Nothing is changed. The question expires at 02:46, and the incident is escalated.')
      })
    })

    test.each([
      ['expired', /nothing was changed/],
      ['denied', /nothing was changed/],
      ['withdrawn', /nothing was changed/],
      ['approved', /has not started yet/],
      ['consumed', /the incident shows/],
    ] as const)('an approval that is %s says what became of the platform', (status, words) => {
      expect(formatApprovalEnd({ status })).toMatch(words)
    })

    test('an approval that waits says nothing of the kind', () => {
      expect(formatApprovalEnd({ status: 'pending' })).toBeNull()
    })

    test('a rehearsal is read line by line: what was found, the diff, the checks, and what was not tried', () => {
      const rehearsal = {
        ...{ told: ['runs as user 7'], untried: ['make was not tried: no way is known.'], tried: false },
        ...{ diff: '-a\n+b\n', checks: [{ argv: ['nginx', '-t'], exit_code: 1, output: 'no\n' }], truncated: true },
      }
      expect(parseRehearsal({ rehearsal })).toEqual({
        lines: ['runs as user 7', '-a', '+b', 'check nginx -t ended with 1', '  no', 'This is not all of it.'],
        untried: ['make was not tried: no way is known.'],
      })
    })

    test('that nothing would change is told only of what was tried in a copy', () => {
      expect(parseRehearsal({ rehearsal: { diff: '', checks: [], would_change: false } })?.lines).toEqual([
        'Tried in a copy: it would change nothing.',
      ])
      expect(parseRehearsal({ rehearsal: { told: [], untried: ['It was not tried.'] } })).toEqual({
        lines: [],
        untried: ['It was not tried.'],
      })
    })

    test('why there is none is a sentence, and what is no rehearsal is left to be shown as it is', () => {
      expect(parseRehearsal({ notRehearsed: 'it cannot be rehearsed' })).toEqual({
        lines: [],
        untried: ['Not rehearsed: it cannot be rehearsed'],
      })
      expect(parseRehearsal({ steps: [] })).toBeNull()
      expect(parseRehearsal({ rehearsal: { told: 'not lines' } })).toBeNull()
    })
  })
})

describe('changes', () => {
  test.each([
    ['nothing', { id: 'a', n: 1 }, { n: 1, id: 'a' }, []],
    ['a value', { id: 'a' }, { id: 'b' }, [['id', 'a', 'b']]],
    ['a place that was left out', { id: 'a', n: 1 }, { id: 'a' }, [['n', 1, undefined]]],
    ['a new place, even one that is null', { id: 'a' }, { id: 'a', n: null }, [['n', undefined, null]]],
    // What reads like a method of every object is an argument like any other.
    ['a place with a name of its own', {}, { constructor: 1 }, [['constructor', undefined, 1]]],
    ['deep inside', { on: { hosts: ['a', 'b'] } }, { on: { hosts: ['a', 'c'] } }, [['on.hosts[1]', 'b', 'c']]],
    ['a list that grew', { hosts: ['a'] }, { hosts: ['a', 'b'] }, [['hosts[1]', undefined, 'b']]],
    ['another kind of value', { hosts: ['a'] }, { hosts: { a: 1 } }, [['hosts', ['a'], { a: 1 }]]],
  ])('a change of arguments shows %s', (_, from, to, expected) => {
    expect(changes(from, to).map(({ path, from, to }) => [path, from, to])).toEqual(expected)
  })

  const signed = (from: string, to: string) => lines(from, to).map(({ sign, text }) => `${sign}${text}`)

  test('a changed text shows the lines that went and came, with two around them', () => {
    const before = ['one', 'two', 'three', 'four', 'five', 'six', 'seven']
    expect(signed(before.join('\n'), before.with(3, 'FOUR').join('\n'))).toEqual([
      ...[' two', ' three', '-four', '+FOUR', ' five', ' six'],
    ])
    expect(signed('a\nb', 'a\nb')).toEqual([])
    expect(signed('a', 'a\nb')).toEqual([' a', '+b'])
  })

  test('a text too long to compare is shown as taken out and put in', () => {
    const long = (word: string) => new Array(1_100).fill(word).join('\n')
    expect(signed(long('a'), long('b'))).toHaveLength(2_200)
  })
})

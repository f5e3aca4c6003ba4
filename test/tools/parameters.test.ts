import { expect, test } from '@jest/globals'
import { plainPolicy } from '../../domain/refusal.ts'
import { validArguments } from '../../domain/valid-call.ts'
import { fold } from '../../safety/fold.ts'
import { judge } from '../../safety/judge.ts'
import { describeTool, toolFacts, tools } from '../../tools/registry.ts'

test.each([...tools.values()].map((tool) => [tool.name, tool] as const))(
  '%s describes each parameter, and a call can be made from its schema',
  (_name, tool) => {
    const { properties } = describeTool(tool).inputSchema
    const silent = Object.entries(properties ?? {}).filter(([, about]) => !('description' in about))
    expect(silent.map(([field]) => field)).toEqual([])
    expect(tool.input.safeParse(validArguments(tool.input, null)).error?.issues).toBeUndefined()
  },
)

test('an invalid call is answered with a valid one, which keeps its valid parts', () => {
  const asked = { callId: 'c1_0', tool: 'proc_kill', arguments: { pid: 7110, on: 'web-7', sig: 'TERM' } }
  const call = { ...asked, problem: null, prepared: null }
  const { code, hint } = judge(call, toolFacts, fold([], 1), plainPolicy('inc_1', null), 0)
  expect(code).toBe('INVALID_ARGUMENTS')
  const shown = JSON.parse(/as proc_kill (\{.*\})\.$/.exec(hint ?? '')?.[1] ?? '{}')
  expect(shown).toMatchObject({ pid: 7110, on: 'web-7', start_time: '236692' })
  expect(tools.get('proc_kill')?.input.safeParse(shown).success).toBe(true)
})

test('a value under an unknown name is suggested under the missing name, and guessed for no other', () => {
  const search = tools.get('pkg_search')!.input
  expect(validArguments(search, { on: 'web-1', query: 'nightly-tariffs' })).toMatchObject({
    on: 'web-1',
    text: 'nightly-tariffs',
  })
  // Two strangers, or two that are needed: nobody knows which is which.
  expect(validArguments(search, { on: 'web-1', query: 'a', filter: 'b' })).not.toMatchObject({ text: 'a' })
  expect(validArguments(search, { query: 'nightly-tariffs' })).not.toMatchObject({ on: 'nightly-tariffs' })
})

import { beforeAll, describe, expect, test } from '@jest/globals'
import { sites } from '../../bench/prompt.ts'
import { lackingAtLab, offeredFirst, repairsOfLab, typeOfFault, withoutRunbook } from '../../bench/repairing.ts'
import { openKnowledge } from '../../knowledge/knowledge.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { readPrompts, renderSystemPrompt, topicsOf } from '../../prompts/render.ts'

const knowledge = openKnowledge({})
beforeAll(() => knowledge.refresh())

test("for nine in ten of the lab's faults that a tool repairs, the first turn offers that tool", () => {
  expect(Object.keys(repairsOfLab).length).toBeGreaterThanOrEqual(27)
  expect(lackingAtLab(knowledge)).toEqual(['port_squatter'])
})

describe('a fault without a matching runbook', () => {
  test.each(withoutRunbook)('%s: the first turn offers the tool that repairs it', (type, kind, says, tool) => {
    const { names, runbook } = offeredFirst(knowledge, { type, kind, says }, kind === 'vm')
    expect([runbook, names.includes(tool)]).toEqual([null, true])
  })
})

const firstTurns = [
  ...Object.entries(repairsOfLab).map(([fault, { kind }]) => ({
    name: fault,
    type: typeOfFault(fault),
    kind,
    says: '',
    isLab: true,
  })),
  // A site of hosts has no VM: the lab's are asked for.
  ...withoutRunbook.map(([type, kind, says]) => ({ name: type, type, kind, says, isLab: kind === 'vm' })),
]

test.each(firstTurns)('$name: prompt and tools are at most 10 kB', ({ type, kind, says, isLab }) => {
  const { first, runbook } = offeredFirst(knowledge, { type, kind, says }, isLab)
  const options = {
    override: null,
    protocol: 'native' as const,
    toolsText: '',
    topics: topicsOf(kind),
    site: isLab ? sites.lab : sites.hosts,
    hasRunbook: runbook !== null,
  }
  const bytes =
    Buffer.byteLength(renderSystemPrompt(readPrompts(), options)) +
    Buffer.byteLength(JSON.stringify(describeTools(first)))
  expect(bytes).toBeLessThanOrEqual(10_240)
})

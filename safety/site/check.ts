import { listOf, type SitePolicy, type SiteRule } from '../../domain/site-policy.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { similarNames } from '../../domain/tool-name.ts'
import { type CompiledPolicy, type CompiledRule, mayRunBySite } from './compile.ts'
import type { PolicyFault, PolicyLines } from './read.ts'
import { standsBefore } from './widens.ts'

type Tools = ReadonlyMap<string, ToolFacts>
type Said = Omit<PolicyFault, 'line'>

/** Finds faults of single rules: unknown names, and rules without effect. */
export function checkRules(policy: SitePolicy, tools: Tools, lines: PolicyLines): PolicyFault[] {
  const names = new Map<string, number>()
  return policy.rules.flatMap((rule, at) => {
    const line = lines(['rules', at])
    const before = names.get(rule.name)
    names.set(rule.name, line)
    const twice: Said[] =
      before === undefined
        ? []
        : [{ why: `the rule on line ${before} has the same name`, remedy: 'give each rule its own name' }]
    return [...twice, ...checkNames(policy, rule, tools), ...checkForm(rule, tools)].map(({ why, remedy }) => ({
      line,
      why: `"${rule.name}": ${why}`,
      remedy,
    }))
  })
}

function checkNames(policy: SitePolicy, rule: SiteRule, tools: Tools): Said[] {
  const found: Said[] = []
  for (const tool of listOf(rule.tool) ?? [])
    if (!tools.has(tool)) found.push(missing('tool', tool, [...tools.keys()], '"nightshift prompt" lists the tools'))
  for (const window of listOf(rule.during) ?? [])
    if (!Object.hasOwn(policy.windows, window))
      found.push(missing('window', window, Object.keys(policy.windows), 'write it under windows'))
  if (rule.group !== undefined && !Object.hasOwn(policy.groups, rule.group))
    found.push(missing('group', rule.group, Object.keys(policy.groups), 'write it under groups'))
  return found
}

function missing(what: string, name: string, known: readonly string[], remedy: string): Said {
  const similar = similarNames(name, known)
  return {
    why: `there is no ${what} ${name}`,
    remedy: similar.length > 0 ? `write ${similar.join(' or ')}` : remedy,
  }
}

/** Describes why a rule can never have an effect. */
function checkForm(rule: SiteRule, tools: Tools): Said[] {
  const { action, tool, resource, type, during, silenced, group, people } = rule
  const facts = (listOf(tool) ?? []).flatMap((name) => tools.get(name) ?? [])
  const found: Said[] = []
  const isOpen = tool === undefined && type === undefined && during === undefined && silenced === undefined
  if (isOpen && isEmpty(resource))
    found.push({
      why: 'the rule matches everything',
      remedy: 'name a tool, a resource, a type, a window or silenced; agent.paused stops all writes of the agent',
    })
  if (resource?.id !== undefined && listOf(resource.kind)?.length !== 1)
    found.push({ why: 'the rule has an id without exactly one kind', remedy: 'write exactly one kind beside id' })
  if (silenced && action === 'run')
    found.push({
      why: 'a silenced alert cannot allow a call, because people are working on the fault',
      remedy: 'write action: ask or action: never',
    })
  if (action !== 'ask' && (group !== undefined || people !== undefined))
    found.push({
      why: `group and people have no effect with "action: ${action}"`,
      remedy: 'leave group and people out, or write action: ask',
    })
  const own = facts.find(({ effect }) => effect === 'record' || effect === 'terminal')
  if (own)
    found.push({
      why: `${own.name} only writes to the incident's log or ends the incident`,
      remedy: 'leave the tool out',
    })
  const look = facts.find(({ effect, command }) => (effect === 'read' || effect === 'resolve') && command === undefined)
  if (look && action !== 'never')
    found.push({
      why: `${look.name} only reads, and "${action}" is for writes`,
      remedy: 'leave the tool out, or write action: never',
    })
  if (look && resource !== undefined)
    found.push({
      why: `${look.name} only reads, so its resource is not checked`,
      remedy: 'leave resource out, or name tools that write or run a command',
    })
  const barred = action === 'run' && facts.find((each) => each.effect === 'write' && !mayRunBySite(each))
  if (barred)
    found.push({
      why: `no policy can allow ${barred.name}: ${whyBarred(barred)}`,
      remedy: 'leave the tool out, or write action: ask',
    })
  return found
}

const isEmpty = (resource: SiteRule['resource']) => resource === undefined || Object.keys(resource).length === 0

function whyBarred({ command, reversible, risk }: ToolFacts): string {
  if (command) return 'the tool runs a command'
  return reversible ? `the tool's risk is ${risk}` : 'the tool cannot be undone'
}

/** Finds rules that never decide, because an earlier rule fits everything that they fit. */
export function checkOrder({ rules }: CompiledPolicy, tools: Tools): PolicyFault[] {
  const mayLook = ({ tools: names }: CompiledRule) => [...(names ?? [])].some((name) => !isWriteAlone(tools.get(name)))
  return rules.flatMap((rule, at) => {
    const looks = mayLook(rule)
    const earlier = rules.slice(0, at).find((each) => standsBefore(each, rule, looks))
    return earlier ? [coveredBy(earlier, rule, standsBefore(rule, earlier, mayLook(earlier)))] : []
  })
}

const isWriteAlone = (facts: ToolFacts | undefined): boolean => facts?.effect === 'write' && facts.command === undefined

function coveredBy(earlier: CompiledRule, rule: CompiledRule, isSame: boolean): PolicyFault {
  const where = `"${earlier.name}" (line ${earlier.line})`
  const why =
    isSame && earlier.action !== rule.action
      ? `the rule contradicts ${where}: both match the same calls, but one decides ${earlier.action} and the other ${rule.action}`
      : `the rule never decides: ${where} comes first and matches all its calls`
  return {
    line: rule.line,
    why: `"${rule.name}": ${why}`,
    remedy: 'remove one of the two rules, or put this rule first',
  }
}

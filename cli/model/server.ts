import type { LearnedProfile } from '../../domain/chat.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { describeTools, describeToolsAsText } from '../../model/describe-tools.ts'
import { type CheckPorts, maxAnswerTokens } from '../../model/passport/check.ts'
import { noFacts, readPrompts, renderContext, renderSystemPrompt, topicsOf } from '../../prompts/render.ts'
import { describedTools, splitTools, tools } from '../../tools/registry.ts'
import { type ModelServer, openExchange } from './exchange.ts'

/** The site in the scripted incidents. */
const site = {
  ...noFacts,
  counts: { region: 1, shard: 3, node: 6, tenant: 8, host: 6, vm: 20 },
  platform: { shards: true, hosts: true },
  databaseShards: 1,
  racks: 3,
}

/** Returns the product's client, prompt and tools, for `model check`. */
export function openPorts(server: ModelServer): Omit<CheckPorts, 'tell'> & { learned(): Promise<LearnedProfile> } {
  const prompts = readPrompts()
  const described = describedTools(null, [], [], site.platform)
  const exchange = openExchange(server)
  return {
    opening({ kind, context }, protocol) {
      const { first } = splitTools(described, kind)
      const options = { override: null, protocol, toolsText: describeToolsAsText(first), topics: topicsOf(kind), site }
      return {
        messages: [
          { role: 'system', content: renderSystemPrompt(prompts, options) },
          { role: 'user', content: renderContext(context) },
        ],
        tools: protocol === 'native' ? describeTools(first) : [],
      }
    },
    examine(name, given) {
      const tool = tools.get(name)
      if (!tool) return { effect: null, problem: 'there is no such tool' }
      const { error } = tool.input.safeParse(given)
      return { effect: tool.effect, problem: error ? nameFaults(error, { max: 1 }) : null }
    },
    async ask(asked) {
      return await exchange.ask({
        ...asked,
        maxTokens: maxAnswerTokens,
        remedy: 'The finished probes are kept. The same command continues with the other probes.',
      })
    },
    learned: exchange.learned,
  }
}

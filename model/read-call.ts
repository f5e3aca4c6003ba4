import type { ProposedCall } from '../domain/event-metadata.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { readToolName } from '../domain/tool-name.ts'
import { readPlainValues } from './plain-values.ts'
import type { ParsedCall } from './protocol.ts'

/**
 * Corrects a call's tool name and values. Keeps the model's own form if it differs. Pure, total.
 */
export function readCall(
  { tool: spelled, arguments: given, written }: ParsedCall,
  tools: ReadonlyMap<string, Pick<ToolFacts, 'input'>>,
): Pick<ProposedCall, 'tool' | 'arguments' | 'spelled' | 'written' | 'read'> {
  const tool = readToolName(spelled, (name) => tools.has(name))
  const facts = tool === null ? undefined : tools.get(tool)
  const plain = facts && given !== null ? readPlainValues(facts.input, given) : null
  return {
    tool: tool ?? spelled,
    arguments: plain?.arguments ?? given,
    ...(tool !== null && tool !== spelled && { spelled }),
    ...(written && { written }),
    ...(plain && plain.read.length > 0 && { read: plain.read }),
  }
}

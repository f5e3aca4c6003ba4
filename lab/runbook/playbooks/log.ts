import type { Conversation } from '../conversation.ts'
import { call, type Decision } from '../decision.ts'
import { done, object, subject, text } from '../facts.ts'
import { freePort, takenAddress } from './port.ts'
import { repairShard } from './shard.ts'

const lastLines = '50'

/**
 * A service that left a log: its end is read on the node first. What stands there is untrusted text and decides nothing; neither
 * does a device that cannot be reached, for the log only explains. Where it says that its address was taken, that is looked at.
 */
export function repairService(conversation: Conversation): Decision {
  const { steps, context } = conversation
  const node = subject(conversation, 'node')
  const log = context!.alerts.map(({ annotations }) => annotations.log).find(Boolean)
  if (!node || !log) return repairShard(conversation)
  const tail = steps.find(({ tool }) => tool === 'exec')
  if (tail) {
    const address = takenAddress(text(object(tail.result?.data), 'stdout') ?? '')
    return address === null ? repairShard(conversation) : freePort(conversation, node, address)
  }
  if (done(steps, 'get_node', node).length === 0)
    return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }
  const argv = ['tail', '-n', lastLines, log]
  return { say: `I read what the service of ${node} said last.`, calls: [call('exec', { on: node, argv })] }
}

import { quoted, words } from '../claims.ts'
import type { Conversation } from '../conversation.ts'
import { call, type Decision, escalate, nothingWrong, resolve } from '../decision.ts'
import { after, done, lastVerification, object, rows, subject, text } from '../facts.ts'

/** Read what the node says it lacks, look whether its repositories have it, ask to install it, and look whether the node is well. */
export function installMissing(conversation: Conversation): Decision {
  const { steps } = conversation
  const node = subject(conversation, 'node')
  const name = conversation.context!.alerts.map(({ labels }) => labels.package).find(Boolean)
  if (!node || !name) return escalate(conversation, 'The alert names no node, or no package that it lacks.')
  const read = done(steps, 'get_node', node)
  if (read.length === 0) return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }

  const installed = done(steps, 'pkg_install', node).at(-1)
  if (!installed) {
    const facts = object(read.at(-1)!.result.data)
    if (text(facts, 'status') === 'nominal')
      return nothingWrong(conversation, `${node} is nominal`, quoted(read.at(-1)!, 'status'))
    // What the alert says was true when it fired: the node itself is asked whether it still is.
    if (!text(facts, 'reason')?.includes(name))
      return escalate(conversation, `${node} is ${text(facts, 'status')}, and does not say that it lacks ${name}.`)
    const found = done(steps, 'pkg_search', node).at(-1)
    if (!found)
      return {
        say: `${node} says that it lacks ${name}; I look whether it can be had.`,
        calls: [call('pkg_search', { on: node, text: name })],
      }
    if (!rows(object(found.result.data).packages).some((each) => text(each, 'name') === name))
      return escalate(conversation, `No repository of ${node} has ${name}.`)
    return {
      say: `The repository of ${node} has ${name}; I ask to install it.`,
      calls: [
        call('pkg_install', {
          on: node,
          packages: [name],
          reason: `The newest release on ${node} needs ${name}, which is not installed.`,
        }),
      ],
    }
  }

  const since = after(steps, 'pkg_install')
  const [looked] = done(since, 'node_health', node).slice(-1)
  if (!looked) return { say: `I look whether ${node} is well.`, calls: [call('node_health', { node })] }
  const status = text(object(looked.result.data), 'status')
  if (status !== 'nominal' || lastVerification([installed, ...since]) === 'not_held')
    return escalate(conversation, `${name} was installed on ${node}, and ${node} is ${status}.`)
  const found = done(steps, 'pkg_search', node).slice(-1)
  return resolve(conversation, 'repaired', `${node} lacked ${name}; it was installed, and ${node} is nominal.`, [
    {
      kind: 'was',
      text: `${node} said that it lacks ${name}`,
      quotes: read.slice(-1).flatMap((step) => quoted(step, 'reason')),
    },
    {
      kind: 'was',
      text: `its repository has ${name}`,
      quotes: found.flatMap((step) => words(step, `"name":"${name}"`)),
    },
    { kind: 'did', text: `${name} was installed with approval`, quotes: quoted(installed, 'detail') },
    { kind: 'is', text: `${node} is nominal`, quotes: quoted(looked, 'status') },
  ])
}

import { z } from '@hono/zod-openapi'
import { confirmSnsTopic, listSnsTopics, removeSnsTopic, waitingSnsTopic } from '../../db/alerts/sns-topics.ts'
import { type SnsTopic, snsTopic } from '../../domain/sns-topic.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const tag = 'ingest'
const params = z.object({ id: z.string().regex(/^[1-9]\d{0,14}$/) })

const example: SnsTopic = {
  id: '1',
  arn: 'arn:aws:sns:eu-north-1:123456789012:alarms',
  isWaiting: false,
  confirmedAt: '2026-11-26T01:46:02.000000Z',
  confirmedBy: 'anna',
  askedAt: '2026-11-26T01:40:02.000000Z',
}

const listEndpoint = endpoint({
  method: 'get',
  path: '/sns/topics',
  permission: 'read_config',
  tag,
  summary: 'Topics of Amazon SNS that wait for confirmation, and confirmed ones',
  answer: pageOf(snsTopic),
  example: { items: [example], nextCursor: null },
  async run({ scope }) {
    return { items: await listSnsTopics(scope), nextCursor: null }
  },
})

const confirmEndpoint = endpoint({
  method: 'post',
  path: '/sns/topics/{id}/confirm',
  permission: 'write_config',
  tag,
  summary: 'Confirms the subscription of an SNS topic, and accepts its alarms from now on',
  params,
  answer: snsTopic,
  example,
  problems: [404, 502],
  async run({ scope, params: { id }, principal }, deps) {
    const waiting = await waitingSnsTopic(scope, id)
    if (!waiting) throw notFound(`topic ${id} that waits for a confirmation`)
    const { status } = await deps.askSns(waiting.subscribeUrl).catch((error: Error) => {
      throw new Problem(502, 'SNS_FAILED', `SNS could not be reached: ${error.message}`)
    })
    if (status !== 200) {
      const detail = `SNS answered ${status}. A confirmation is valid for three days. Let SNS send another confirmation.`
      throw new Problem(502, 'SNS_FAILED', detail)
    }
    const confirmed = await confirmSnsTopic(deps.db, id, waiting.subscribeUrl, principal.name)
    if (!confirmed) throw notFound(`topic ${id}`)
    return confirmed
  },
})

const removeEndpoint = endpoint({
  method: 'post',
  path: '/sns/topics/{id}/remove',
  permission: 'write_config',
  tag,
  summary: 'Refuses further alarms of a topic; the subscription at SNS stays',
  params,
  answer: z.object({ id: z.string() }),
  example: { id: '1' },
  problems: [404],
  async run({ params: { id }, principal }, deps) {
    if (!(await removeSnsTopic(deps.db, id, principal.name))) throw notFound(`topic ${id}`)
    return { id }
  },
})

export const snsTopicRoutes = [listEndpoint, confirmEndpoint, removeEndpoint]

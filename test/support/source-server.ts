import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect } from '@jest/globals'
import type { useApi } from './api.ts'

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void
type Asked = { path: string; body: URLSearchParams; authorization: string | undefined }

/** A server that answers as the test says, and the API that reads it as a source of metrics. */
export function useSourceServer(api: ReturnType<typeof useApi>) {
  const stage = { url: '', answer: (() => {}) as Answer, asked: [] as Asked[] }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      stage.asked.push({
        path: request.url ?? '',
        body: new URLSearchParams(body),
        authorization: request.headers.authorization,
      })
      stage.answer(request, response, body)
    })
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    stage.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const add = async (name: string, more: Record<string, unknown> = {}) => {
    const made = await api.put(`/sources/${name}`, { body: { kind: 'prometheus', url: stage.url, ...more } })
    expect([made.status, made.body.code]).toEqual([200, undefined])
    stage.asked = []
  }
  const read = (args: Record<string, unknown>, tool = 'query_metrics') =>
    api.post('/sources/read', { body: { tool, arguments: args } })
  return { stage, add, read }
}

export const json =
  (value: unknown): Answer =>
  (_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(value))
  }
export const matrix = (result: unknown[]) => json({ status: 'success', data: { resultType: 'matrix', result } })
export const vector = (result: unknown[]) => json({ status: 'success', data: { resultType: 'vector', result } })

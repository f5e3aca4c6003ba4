import { engineAt } from '../engine.ts'
import { dockerExec } from './docker-exec.ts'
import { dockerList } from './docker-list.ts'
import { dockerLogs } from './docker-logs.ts'

/** The three on one engine; `host` as DOCKER_HOST writes it, which only an entry file reads. */
export function dockerOn(host: string | undefined) {
  const engine = engineAt(host)
  return { list: dockerList(engine), logs: dockerLogs(engine), exec: dockerExec(engine) }
}

import type { Play } from '../local-server.ts'

/** What AWX's and Rundeck's documentation say that they answer, as far as a job needs it. */

type Job = { id: number; looks: number; body: Record<string, unknown>; canceled: boolean }

export type ScriptedAwx = {
  play: Play
  jobs: Job[]
  launch: Record<string, unknown>
  stdout: string
  /** How often a job is looked at before it has ended; null: never. */
  endsAfter: number | null
  status: string
  /** The launch is carried out, and its answer never comes. */
  losesLaunch: boolean
}

export function scriptedAwx(): ScriptedAwx {
  const awx: ScriptedAwx = {
    jobs: [],
    launch: {
      ask_job_type_on_launch: true,
      ask_limit_on_launch: true,
      ask_variables_on_launch: true,
      ask_diff_mode_on_launch: true,
      defaults: { job_type: 'run' },
    },
    stdout: 'node-osl-2 : ok=2 changed=1 unreachable=0 failed=0',
    endsAfter: 1,
    status: 'successful',
    losesLaunch: false,
    play(response, { method, path, headers, body }) {
      const json = (status: number, answer: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      if (headers.authorization !== 'Bearer awx-secret')
        return json(401, { detail: 'Authentication credentials were not provided.' })
      if (path === '/api/v2/job_templates/7/launch/') {
        if (method === 'GET') return json(200, awx.launch)
        const job = { id: 40 + awx.jobs.length, looks: 0, body: JSON.parse(body), canceled: false }
        awx.jobs.push(job)
        if (awx.losesLaunch) return response.destroy()
        return json(201, { job: job.id, id: job.id, status: 'pending', ignored_fields: {} })
      }
      const [, id, rest] = /^\/api\/v2\/jobs\/(\d+)\/(.*)$/.exec(path) ?? []
      const job = awx.jobs.find((each) => String(each.id) === id)
      if (!job) return json(404, { detail: 'Not found.' })
      if (rest === 'stdout/?format=txt')
        return response.writeHead(200, { 'content-type': 'text/plain' }).end(awx.stdout)
      if (rest === 'cancel/') {
        job.canceled = true
        return response.writeHead(202).end()
      }
      job.looks += 1
      const isOver = awx.endsAfter !== null && job.looks > awx.endsAfter
      return json(200, {
        ...{ id: job.id, job_type: job.body.job_type, job_explanation: '' },
        status: job.canceled ? 'canceled' : isOver ? awx.status : 'running',
      })
    },
  }
  return awx
}

export type ScriptedRundeck = {
  play: Play
  ran: { job: string; body: { options: Record<string, string> } }[]
  status: string
}

export function scriptedRundeck(): ScriptedRundeck {
  const rundeck: ScriptedRundeck = {
    ran: [],
    status: 'succeeded',
    play(response, { method, path, headers, body }) {
      const json = (status: number, answer: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      if (headers['x-rundeck-auth-token'] !== 'rundeck-secret')
        return json(403, { error: true, errorCode: 'unauthorized' })
      const [, job] = /^\/api\/41\/job\/([\w-]+)\/run$/.exec(path) ?? []
      if (job && method === 'POST') {
        rundeck.ran.push({ job, body: JSON.parse(body) })
        return json(200, { id: rundeck.ran.length, status: 'running', href: `/api/41/execution/${rundeck.ran.length}` })
      }
      const [, id, output] = /^\/api\/41\/execution\/(\d+)(\/output)?$/.exec(path) ?? []
      if (!id || !rundeck.ran[Number(id) - 1])
        return json(404, { error: true, errorCode: 'api.error.item.doesnotexist' })
      if (output)
        return json(200, {
          id,
          completed: true,
          entries: [{ time: '01:02:03', level: 'NORMAL', log: `changed=${rundeck.status === 'succeeded' ? 1 : 0}` }],
        })
      return json(200, { id: Number(id), status: rundeck.status })
    },
  }
  return rundeck
}

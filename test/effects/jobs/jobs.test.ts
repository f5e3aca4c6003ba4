import { expect, test } from '@jest/globals'
import { whyUnnameable } from '../../../domain/job.ts'
import { JobsFileError, parseJobs } from '../../../effects/jobs/jobs.ts'

const job = (more: string) => `
jobs:
  - name: converge-web
    about: Re-applies the web role
    resources: { kind: node, pattern: "web-.*" }
${more}`

function faultsOf(text: string): string[] {
  try {
    parseJobs(text)
  } catch (error) {
    if (error instanceof JobsFileError) return error.faults
    throw error
  }
  return []
}

test('a file of jobs is YAML or JSON, with merged parts', () => {
  const [declared] = parseJobs(
    job(`    run: &playbook { command: [ansible-playbook, web.yml, --limit, "{id}"], cwd: /etc/ansible }
    check: { <<: *playbook, command: [ansible-playbook, web.yml, --check, --limit, "{id}"], noChanges: { exitCode: 0 } }`),
  )
  expect(declared).toMatchObject({ timeoutSeconds: 600, check: { cwd: '/etc/ansible', okExitCodes: [0] } })
  expect(parseJobs(JSON.stringify({ jobs: [declared] }))).toEqual([declared])
  expect(parseJobs('')).toEqual([])
})

test('every fault of the file is named at once, with its line', () => {
  const faults = faultsOf(`jobs:
  - name: Converge
    about: Re-applies the web role
    resources: { kind: nodes, ids: [web-1], pattern: "web-.*" }
    run:
      command: [ansible-playbook, "{hostname}"]
  - name: restart
    about: Restarts it
    resources: { kind: node, pattern: "web-.*" }
    run:
      http:
        url: https://jobs.example.com/restart
        headers: { Authorization: Bearer abcdef }
    timeout: 5
  - name: text
    about: Runs a text
    resources: { kind: node, ids: [web-1] }
    run: { command: [bash, -c, "echo {id}"] }
  - name: nothing
    about: Runs nothing
    resources: { kind: node, ids: [web-1] }
    run: {}`)
  expect(faults.map((fault) => fault.replace(/(line \d+: \S+) .*/, '$1'))).toEqual(
    expect.arrayContaining([
      'line 2: jobs.0.name:',
      'line 4: jobs.0.resources.kind:',
      'line 6: jobs.0.run.command.1:',
      'line 13: jobs.1.run.http.headers.Authorization:',
      'line 18: jobs.2.run.command:',
      'line 22: jobs.3.run:',
    ]),
  )
  expect(faults.join('\n')).toContain('write { from: file:/path }')
  expect(faults.join('\n')).not.toContain('abcdef')
})

test('a job for several that does not say which of them, two of one name, and a secret in an address are faults', () => {
  expect(faultsOf(job('    run: { command: [converge] }'))).toEqual([
    'line 6: jobs.0.run: names no resource: use {id} or {name}, or list one id',
  ])
  const one = job('    run: { command: [converge, "{id}"] }')
  expect(faultsOf(one + one.replace('\njobs:', ''))).toEqual(['line 7: jobs.1.name: converge-web is there twice'])
  const secret = job('    run: { http: { url: "https://x.example.com/{id}?token=abc" } }')
  expect(faultsOf(secret)[0]).toContain('holds a secret in the address')
  expect(faultsOf('jobs: [')[0]).toMatch(/^line 1: /)
})

test('a resource whose id would mean more than itself to a job is not named to it', () => {
  const [declared] = parseJobs(
    `jobs: [{ name: a, about: any host, resources: { kind: node, pattern: ".*" }, run: { command: [converge, "{id}"] } }]`,
  )
  const why = (id: string) => whyUnnameable(declared!, { kind: 'node', id, name: id })
  for (const id of ['web-1:all', 'web-1,db-1', '-e', 'a b', '!web', 'x@y', '{{x}}', 'a/../b'])
    expect(why(id)).toContain('characters')
  for (const id of ['all', 'ALL', 'localhost', 'ungrouped']) expect(why(id)).toContain('more than this one')
  expect(why('web-1.example.com')).toBeNull()
})

import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { whyUnnameable } from '../../../domain/job.ts'
import { JobsFileError, parseJobs } from '../../../effects/jobs/jobs.ts'
import { writeJobs } from '../../../lab/jobs.ts'
import { temporaryDirectory } from '../../support/directory.ts'

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

test('the jobs of the lab, with which a start begins, follow the rules', () => {
  const dir = temporaryDirectory()
  expect(parseJobs(readFileSync(writeJobs(dir.path), 'utf8'))).toMatchObject([{ name: 'unlock-search' }])
  dir.remove()
})

test('every error of the file is named at once, with its line', () => {
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

test('a job for several resources without a choice, two jobs of one name, and a secret in an address are errors', () => {
  expect(faultsOf(job('    run: { command: [converge] }'))).toEqual([
    'line 6: jobs.0.run: names no resource: use {id} or {name}, or list one id',
  ])
  const one = job('    run: { command: [converge, "{id}"] }')
  expect(faultsOf(one + one.replace('\njobs:', ''))).toEqual(['line 7: jobs.1.name: converge-web is listed twice'])
  const secret = job('    run: { http: { url: "https://x.example.com/{id}?token=abc" } }')
  expect(faultsOf(secret)[0]).toContain('contains a secret in the address')
  expect(faultsOf('jobs: [')[0]).toMatch(/^line 1: /)
})

test('the undo of a job has to exist for the same resources, and the job has to declare the state that it leaves', () => {
  const declared = (undo: string, check = 'check: { command: ["true", "{id}"], noChanges: { exitCode: 0 } }') =>
    job(`    run: { command: [touch, "{id}"] }
    ${check}
    undo: ${undo}
  - name: other
    about: Is for hosts
    resources: { kind: host, pattern: ".*" }
    run: { command: [rm, "{id}"] }`)
  expect(faultsOf(declared('gone')).join()).toContain('gone is not declared: name another job for a node')
  expect(faultsOf(declared('other')).join()).toContain('other is for a host')
  expect(faultsOf(declared('converge-web')).join()).toContain('is this job itself')
  expect(faultsOf(declared('other', '')).join()).toContain('needs check.noChanges')
})

test('a resource whose id would mean more than itself to a job is not passed to it', () => {
  const [declared] = parseJobs(
    `jobs: [{ name: a, about: any host, resources: { kind: node, pattern: ".*" }, run: { command: [converge, "{id}"] } }]`,
  )
  const why = (id: string) => whyUnnameable(declared!, { kind: 'node', id, name: id })
  for (const id of ['web-1:all', 'web-1,db-1', '-e', 'a b', '!web', 'x@y', '{{x}}', 'a/../b'])
    expect(why(id)).toContain('characters')
  for (const id of [
    'all',
    'ALL',
    'localhost',
    'ungrouped',
    'localhost.',
    'localhost.localdomain',
    'a.localhost',
    'all.',
  ])
    expect(why(id)).toContain('more resources than this one')
  for (const id of [
    '127.0.0.1',
    '127.1',
    '127.0.0.1.',
    '0',
    '0.0.0.0',
    '0x7f000001',
    '0177.0.0.1',
    '2130706433',
    '0x0.0',
  ])
    expect(why(id)).toContain('more resources than this one')
  for (const id of ['web-1.example.com', '101', '10.0.0.7', '128.0.0.1', 'all-1'])
    expect([id, why(id)]).toEqual([id, null])
  const groups = ['webservers', 'eu1']
  const named = (name: string, more = '') =>
    whyUnnameable(
      parseJobs(
        `jobs: [{ name: a, about: some host, resources: { kind: node, pattern: "web-[0-9]+"${more} }, run: { command: [converge, "{name}"] } }]`,
      )[0]!,
      { kind: 'node', id: 'web-1', name },
      groups,
    )
  expect(named('webservers')).toContain('name of a group')
  expect(named('WebServers')).toContain('name of a group')
  expect(named('db-1')).toContain('resources.names')
  for (const name of ['web-1', 'web-1.example.com', 'web-2']) expect(named(name)).toBeNull()
  expect(named('www', ', names: "www|web"')).toBeNull()
  expect(named('web-1', ', names: "www|web"')).toContain('resources.names')
})

test.each([
  '[sh, -c, "x {id}"]',
  '[/bin/bash, -lc, "x {id}"]',
  '[env, sh, -c, "x {id}"]',
  '[env, -S, "sh -c x {id}"]',
  '[sudo, bash, -c, "x {id}"]',
  '[busybox, sh, -c, "x {id}"]',
  '[nsenter, -t, "1", -m, sh, -c, "x {id}"]',
  '[xargs, sh, -c, "x {id}"]',
  '[timeout, "5", sh, -c, "x {id}"]',
  '[ssh, "{id}", reboot]',
  '[/usr/bin/ssh, -p, "22", "{id}", "reboot now"]',
  '[su, -c, "x {id}"]',
  '[su, deploy, "--command=x {id}"]',
  '[python3, -c, "print(1)", "{id}"]',
  '[/usr/bin/python3.12, -Ic, "x", "{id}"]',
  '[perl, -e, "x", "{id}"]',
  '[sudo, node, --eval, "x", "{id}"]',
  '[node, --eval, "x", "{id}"]',
  '[php, -r, "x", "{id}"]',
  '[watch, "x {id}"]',
  '[flock, /tmp/l, -c, "x {id}"]',
  '[kubectl, exec, "{id}", --, sh, -c, uptime]',
  '[docker, exec, "{id}", ash, -c, uptime]',
  '[ansible, "{id}", -m, shell, -a, uptime]',
  '[ansible, "{id}", -a, uptime]',
  '[ansible, "{id}", -mshell, -a, uptime]',
  '[ansible, "{id}", --module-name=raw, -a, uptime]',
  '[ansible, "{id}", --module-name, shell, --args, uptime]',
  '[ansible, "{id}", -m, ansible.legacy.shell, -a, uptime]',
  '[ansible, "{id}", --args, uptime]',
  '[sudo, "{name}"]',
  '[timeout, "5", "{name}"]',
  '[sudo, env, A=b, "/opt/{id}"]',
  '[unknown-wrapper, "x {id}"]',
  '[unknown-wrapper, "x;{id}"]',
  '[unknown-wrapper, "$({id})"]',
  '[find, /srv, -exec, bash, -c, "x {id}", ";"]',
  '[ksh93, -c, "x; y", "{id}"]',
  '[unknown-shell, -c, "x $1", "{id}"]',
  '[git, -c, "alias.x=!reboot", x, "{id}"]',
  '[unknown-wrapper, \'{"cmd": "x; y {id}"}\']',
])('a text for a shell is no job, whatever precedes it: %s', (command) => {
  expect(faultsOf(job(`    run: { command: ${command} }`)).join()).toContain('is a text for a shell')
})

test.each([
  '[ansible-playbook, -i, hosts.ini, web.yml, --limit, "{id}", --check, --diff]',
  '[ansible-playbook, web.yml, -e, "host={id} asked_by=nightshift", -e, \'{"host":"{name}"}\']',
  '[terraform, plan, -target, "module.web[0]", -var, "id={id}"]',
  '[sudo, -n, systemctl, restart, "app@{id}"]',
  '[env, A=b, /opt/converge, "{id}"]',
  '[timeout, "60", /opt/converge.sh, "{id}"]',
  '[bash, /opt/converge.sh, "{id}"]',
  '[python3, -m, converge, "{id}"]',
  '[flock, /run/lock, /opt/converge, "{id}"]',
  '[ansible, "{id}", -m, ping]',
  '[ansible, "{id}", --list-hosts]',
  '[ansible, "{id}", --module-name=service, -a, "name=web state=restarted"]',
  '[sudo, -n, /opt/converge, "{id}"]',
  '[salt, "{id}", state.apply, test=True]',
  '[knife, node, run_list, -E, prod, "{id}"]',
  '[git, push, -c, "{id}"]',
  '[find, "/srv/{id}", -name, "*.tmp", -printf, "would remove %p, %s bytes"]',
  '[ansible-playbook, web.yml, --limit, "web:!web-9:&prod:{id}"]',
  '[ansible-playbook, web.yml, --limit, "web-*:{id}"]',
])('a program with its words is a job: %s', (command) => {
  expect(faultsOf(job(`    run: { command: ${command} }`))).toEqual([])
})

import { beforeAll, describe, expect, test } from '@jest/globals'
import { brokers, queues } from '../../../safety/command/grammars/brokers.ts'
import { controls } from '../../../safety/command/grammars/controls.ts'
import { deployers } from '../../../safety/command/grammars/deployers.ts'
import { disks } from '../../../safety/command/grammars/disks.ts'
import { meshes } from '../../../safety/command/grammars/meshes.ts'
import { platforms } from '../../../safety/command/grammars/platforms.ts'
import { switches } from '../../../safety/command/grammars/switches.ts'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

beforeAll(() => loadSql())
const context: CommandContext = {
  knownHosts: new Set(['localhost', 'db-osl-1']),
  knownNames: new Set(['web']),
  directory: '/srv',
}
const judged = (text: string) => judgeCommand(text, context)
const lines = (text: string): string[] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.trim())

describe('queries in a language that a client carries', () => {
  test.each(
    lines(`
    clickhouse-client -q 'select table, formatReadableSize(sum(bytes)) from system.parts where active group by table limit 10'
    clickhouse-client --host db-osl-1 --max_execution_time 30 --query 'SELECT count() FROM events WHERE day = today()'
    clickhouse-client -q 'show processlist'
    clickhouse-client -q "select name, value from system.settings where name like 'max%'"
    mongosh --quiet --eval 'rs.status()'
    mongosh --quiet --eval 'db.adminCommand({replSetGetStatus:1}).members.map(m => m.name + " " + m.stateStr)'
    mongosh --eval 'db.orders.find({status: "failed", n: {$gt: 3}}).limit(5)'
    mongosh --eval 'JSON.stringify(db.serverStatus().connections)'
    cqlsh -e 'select peer, release_version from system.peers'
    cqlsh db-osl-1 9042 -e 'describe table ks.t'
    vtysh -c 'show ip bgp summary' -c 'show ip route | include 10.0.0.0'
    birdc show protocols all bgp1
    echo 'show info; show stat' | socat - UNIX-CONNECT:/run/haproxy/admin.sock
    echo 'show servers state' | socat stdio unix:/run/haproxy/admin.sock`),
  )('%s runs', (text) => {
    expect(judged(text)).toMatchObject({ verdict: 'run' })
  })

  test.each(
    lines(String.raw`
    clickhouse-client -q "select * from url('http://192.0.2.1/x')"
    clickhouse-client -q "select * from URL ('http://192.0.2.1/x')"
    clickhouse-client -q "select/**/* from file('/etc/passwd')"
    clickhouse-client -q "select * from s3Cluster('a', 'http://192.0.2.1')"
    clickhouse-client -q "select 1 into outfile '/tmp/x'"
    clickhouse-client -q 'select 1; drop table t'
    clickhouse-client -q "select ''' ; drop table t"
    clickhouse-client -q 'select * from system.users'
    clickhouse-client -q 'select * from system . named_collections'
    clickhouse-client -q 'select engine_full from system.tables'
    clickhouse-client -q 'select sleep(3) from numbers(1000000)'
    clickhouse-client -q 'select 1 settings max_memory_usage=0'
    clickhouse-client -d system -q 'select * from users'
    clickhouse-client -q 'show create user root'
    clickhouse-client --queries-file /tmp/x.sql
    clickhouse-client -h 192.0.2.9 -q 'select 1'
    echo 'drop table t' | clickhouse-client
    mongosh --eval 'db.orders.drop()'
    mongosh --eval 'rs.status(); db.dropDatabase()'
    mongosh --eval 'db["dropDatabase"]()'
    mongosh --eval 'db.orders.find({$where: "sleep(9)"}).limit(1)'
    mongosh --eval 'db.orders.find({"$where": "sleep(9)"}).limit(1)'
    mongosh --eval 'db.orders.find({a: 1}).limit(1).forEach(d => db.x.insertOne(d))'
    mongosh --eval 'db.adminCommand({shutdown: 1})'
    mongosh --eval 'db.adminCommand({ping: db.dropDatabase()})'
    mongosh --eval 'rs.status().constructor.constructor("x")()'
    mongosh --eval 'print(load("/tmp/x.js"))'
    mongosh --eval 'db.system.users.find({}).limit(5)'
    mongosh --eval 'db.orders.find({})'
    mongosh mongodb://192.0.2.1/app --eval 'rs.status()'
    mongosh --eval 'rs.status()' /tmp/x.js
    mongosh --eval 'rs.status()' --eval 'db.dropDatabase()'
    cqlsh -e 'select * from system_auth.roles'
    cqlsh -e "copy ks.t to '/tmp/x'"
    cqlsh -e 'describe cluster; truncate ks.t'
    cqlsh -f /tmp/x.cql
    vtysh -c 'show version' -c 'configure terminal'
    vtysh -c $'show version\nconfigure terminal'
    vtysh -c 'show running-config'
    vtysh -f /tmp/x
    birdc down
    birdc show route where a
    echo down | birdc
    echo 'show stat; disable server b/s' | socat - /run/haproxy/admin.sock
    echo 'show env' | socat - /run/haproxy/admin.sock
    echo 'show stat' | socat - /run/haproxy/admin.sock
    echo 'show stat' | socat - UNIX-CONNECT:/run/haproxy/admin.sock,create
    echo 'show stat' | socat - EXEC:/bin/sh
    echo 'show stat' | socat - /etc/cron.d/x
    socat - /run/haproxy/admin.sock
    cat /tmp/x | socat - /run/haproxy/admin.sock`),
  )('%s asks', (text) => {
    expect(judged(text).verdict).toBe('ask')
  })
})

describe('verbs of control programs', () => {
  test.each(
    lines(`
    nodetool -h localhost status
    gluster volume heal gv0 info
    gluster --mode=script volume status gv0
    dmsetup ls --tree
    bpftool -j prog show
    openstack server list --all-projects -f json
    openstack --os-cloud prod hypervisor stats show
    openstack server show web -c status -c name
    hcloud server list -o json
    doctl compute droplet list --format ID,Name
    gh run view 123 --log-failed
    gh api repos/o/r/actions/runs --jq '.workflow_runs[0].conclusion'
    radosgw-admin bucket stats --bucket=b1
    ceph daemon osd.3 perf dump
    ceph config get osd osd_max_backfills
    ovs-vsctl list-ports br0
    consul catalog services
    consul kv get -keys app
    nats stream info S1
    vault operator raft list-peers
    pcs resource status
    kcat -L -b localhost:9092`),
  )('%s runs', (text) => {
    expect(judged(text)).toMatchObject({ verdict: 'run' })
  })

  test.each(
    lines(`
    nodetool drain
    nodetool -h 192.0.2.1 status
    gluster volume heal gv0
    gluster volume heal info
    gluster volume top gv0 clear
    gluster
    dmsetup table --showkeys
    dmsetup ls --exec id
    bpftool prog load x.o /sys/fs/bpf/x
    bpftool prog dump xlated id 1 file /tmp/x
    openstack server delete web
    openstack server show web
    openstack server show web -c user_data
    openstack token issue
    openstack --os-auth-url http://192.0.2.1 server list
    openstack server list --log-file /tmp/x
    hcloud server reset-password web
    hcloud --config /tmp/x server list
    doctl databases list
    doctl databases get d --format URI
    doctl -t secret account get
    gh pr merge 1
    gh api -X DELETE repos/o/r
    gh api repos/o/r -f a=b
    gh api repos/o/r/../../user
    gh pr list -R 192.0.2.1/o/r
    gh pr view 1 --web
    radosgw-admin user info --uid=u
    ceph daemon osd.3 perf reset all
    ceph config get mgr mgr/dashboard/password
    ceph config show osd.3
    ovs-vsctl list-br -- del-br br0
    ovs-vsctl list bridge -- emer-reset
    consul kv get app/password
    vault kv get secret/x
    pcs resource cleanup
    gobgp neighbor 10.0.0.1 reset
    talosctl service kubelet restart
    service nginx
    service nginx restart
    sdiag -r
    ssacli ctrl slot=0 ld 1 delete forced
    ssacli ctrl slot=0 modify dwc=enable
    ssacli ctrl slot=0 pd 1I:1:2 erase
    consul validate /etc/shadow
    clickhouse-client -q 'select * from system.numbers'
    lldpcli
    varnishadm
    kcat -b localhost:9092 -t t -P -l /etc/hosts`),
  )('%s asks', (text) => {
    expect(judged(text).verdict).toBe('ask')
  })

  test('an unlisted verb is classified as unknown', () => {
    for (const text of ['nodetool decommission', 'hcloud server delete web', 'argocd app delete web'])
      expect(judged(text)).toMatchObject({ verdict: 'ask', impact: 'unknown' })
  })

  /**
   * Bare, a program of these waits for commands on its input, unless its grammar says that it only
   * prints.
   */
  test('without a verb only those run that print and end', () => {
    const bare = Object.keys({
      ...brokers,
      ...controls,
      ...deployers,
      ...meshes,
      ...disks,
      ...platforms,
      ...queues,
      ...switches,
    }).filter((name) => judged(name).verdict === 'run')
    expect(bare.sort()).toEqual(printing.sort())
  })
})

const printing =
  'arc_summary ibdev2netdev ibhosts iblinkinfo ibnetdiscover ibnodes ibqueryerrors ibrouters ibswitches ibv_devices lvscan ofed_info perfquery pvscan show_gids vgscan arcstat aureport bpftool edac-util gh glab ibstat ibstatus ibv_devinfo iwconfig lldpctl lsscsi lvmdiskscan memcstat nerdctl nfsiostat qshape repquota sacct sdiag sinfo sprio squeue sshare wg'.split(
    ' ',
  )

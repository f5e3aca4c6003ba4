/**
 * Where a value is written with its name, as the program's manual or its packaged example does it.
 */
type Write = (value: string) => string

/** Files of settings that hold a secret on many sites and whose names say nothing of it. */
export const settingsOfSites: Record<string, Write> = {
  '/etc/haproxy/haproxy.cfg': (v) =>
    `listen stats\n  stats auth admin:${v}\nuserlist ops\n  user ops insecure-password ${v}\n`,
  '/etc/named.conf': (v) => `key "web" {\n  algorithm hmac-sha256;\n  secret "${v}";\n};\n`,
  '/etc/dhcp/dhcpd.conf': (v) => `key omapi {\n  algorithm hmac-md5;\n  secret ${v};\n}\n`,
  '/etc/nut/upsd.users': (v) => `[monitor]\n  password = ${v}\n  upsmon primary\n`,
  '/etc/nut/upsmon.conf': (v) => `MONITOR ups@localhost 1 monitor ${v} primary\n`,
  '/etc/pgbackrest.conf': (v) => `[global]\nrepo1-s3-key-secret=${v}\nrepo1-cipher-pass=${v}\n`,
  '/etc/odoo/odoo.conf': (v) => `[options]\nadmin_passwd = ${v}\ndb_password = ${v}\n`,
  '/etc/nova/nova.conf': (v) =>
    `[database]\nconnection = mysql+pymysql://nova:${v}@db1/nova\n[neutron]\npassword = ${v}\n`,
  '/etc/neutron/neutron.conf': (v) =>
    `[DEFAULT]\ntransport_url = rabbit://openstack:${v}@db1\nmetadata_proxy_shared_secret = ${v}\n`,
  '/etc/keystone/keystone.conf': (v) => `[DEFAULT]\nadmin_token = ${v}\n`,
  '/etc/cinder/cinder.conf': (v) => `[backend]\nsan_password = ${v}\n`,
  '/etc/drbd.d/data.res': (v) => `resource data {\n  net { cram-hmac-alg sha1; shared-secret "${v}"; }\n}\n`,
  '/etc/ansible/group_vars/all.yml': (v) => `db_password: ${v}\nvault_token: ${v}\n`,
  '/etc/ansible/hosts': (v) => `db1 ansible_user=ops ansible_password=${v}\n`,
  '/srv/pillar/db.sls': (v) => `mysql:\n  root_password: ${v}\n`,
  '/srv/app/docker-compose.yml': (v) =>
    `services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: ${v}\n      - API_TOKEN=${v}\n`,
  '/srv/app/compose.yaml': (v) => `services:\n  db:\n    environment:\n      MYSQL_ROOT_PASSWORD: "${v}"\n`,
  '/srv/app/application.properties': (v) => `spring.datasource.password=${v}\nserver.port=80\n`,
  '/srv/app/application.yml': (v) => `spring:\n  datasource:\n    password: ${v}\n`,
  '/srv/www/config.php': (v) => `<?php\n$config['db_password'] = '${v}';\ndefine('DB_PASSWORD', '${v}');\n`,
  '/etc/php/8.2/fpm/pool.d/www.conf': (v) => `[www]\nenv[DB_PASSWORD] = ${v}\n`,
  '/etc/apache2/sites-enabled/app.conf': (v) => `AuthLDAPBindPassword "${v}"\n`,
  '/etc/httpd/conf.d/ldap.conf': (v) => `AuthLDAPBindPassword ${v}\n`,
  '/etc/fail2ban/action.d/slack.conf': (v) => `[Init]\ntoken = ${v}\n`,
  '/etc/rsyslog.d/mysql.conf': (v) => `action(type="ommysql" server="db1" uid="ops" pwd="${v}")\n`,
  '/etc/yum.repos.d/internal.repo': (v) => `[internal]\nusername=ops\npassword=${v}\n`,
  '/etc/pam.d/ftp': (v) => `auth required pam_mysql.so user=ftp passwd=${v} host=db1\n`,
  '/etc/profile.d/app.sh': (v) => `export API_TOKEN=${v}\n`,
  '/etc/default/app': (v) => `APP_SECRET="${v}"\n`,
  '/etc/sysconfig/app': (v) => `DATABASE_URL=postgres://app:${v}@db1/app\n`,
  '/etc/zypp/credentials.d/SCC': (v) => `username=ops\npassword=${v}\n`,
  '/etc/systemd/system/worker.service': (v) =>
    `[Service]\nEnvironment=DB_PASSWORD=${v}\nExecStart=/srv/app/bin/worker --token ${v}\n`,
  '/etc/cron.d/sync': (v) => `* * * * * root curl -H "Authorization: Bearer ${v}" http://db1/sync\n`,
  '/etc/nginx/conf.d/proxy.conf': (v) => `proxy_set_header Authorization "Bearer ${v}";\n`,
  '/etc/uwsgi/apps-enabled/app.ini': (v) => `[uwsgi]\nenv = SECRET_KEY=${v}\n`,
  '/etc/supervisor/conf.d/app.conf': (v) => `[program:app]\nenvironment=DB_PASSWORD="${v}",PORT="80"\n`,
  '/var/log/app/start.log': (v) => `starting with --db-password=${v}\nconnected to postgres://app:${v}@db1/app\n`,
}

/** Ten formats, each with a name that promises a secret, at paths that promise none. */
export const tenFormats: Record<string, Write> = {
  '/srv/app/conf/app.yaml': (v) => `db:\n  host: db1\n  password: ${v}\n`,
  '/srv/app/conf/app.ini': (v) => `[db]\nhost = db1\npassword = ${v}\n`,
  '/srv/app/conf/app.properties': (v) => `db.host=db1\ndb.password=${v}\n`,
  '/srv/app/conf/app.json': (v) => `{"db": {"host": "db1", "password": "${v}"}}\n`,
  '/srv/app/conf/app.xml': (v) => `<db>\n  <host>db1</host>\n  <password>${v}</password>\n</db>\n`,
  '/srv/app/conf/app.toml': (v) => `[db]\nhost = "db1"\npassword = "${v}"\n`,
  '/srv/app/conf/app.sh': (v) => `DB_HOST=db1\nexport DB_PASSWORD='${v}'\n`,
  '/srv/app/conf/app.php': (v) => `<?php\nreturn ['host' => 'db1', 'password' => '${v}'];\n`,
  '/srv/app/conf/app.conf': (v) => `host db1;\npassword ${v};\n`,
  '/srv/app/conf/app.hcl': (v) => `db {\n  host     = "db1"\n  password = "${v}"\n}\n`,
}

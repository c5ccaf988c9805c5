/* WiredTiger's interface is made of structures of function pointers and of macros. This shim gives
 * the few operations that are used here plain names, so that no program has to declare those structures
 * a second time. Functions return 0 or WiredTiger's error code. */
#include <stdint.h>
#include <stdlib.h>
#include <wiredtiger.h>

typedef struct {
	WT_SESSION *session;
	WT_CURSOR *cursor;
} shim_worker;

int shim_open(const char *dir, const char *config, WT_CONNECTION **connection)
{
	return wiredtiger_open(dir, NULL, config, connection);
}

int shim_close(WT_CONNECTION *connection)
{
	return connection->close(connection, NULL);
}

int shim_create(WT_CONNECTION *connection, const char *config)
{
	WT_SESSION *session;
	int error = connection->open_session(connection, NULL, NULL, &session);
	if (error != 0)
		return error;
	error = session->create(session, "table:rows", config);
	session->close(session, NULL);
	return error;
}

int shim_worker_open(WT_CONNECTION *connection, int bulk, shim_worker **out)
{
	shim_worker *w = calloc(1, sizeof *w);
	if (w == NULL)
		return WT_ERROR;
	int error = connection->open_session(connection, NULL, "isolation=snapshot", &w->session);
	if (error == 0)
		error = w->session->open_cursor(
		    w->session, "table:rows", NULL, bulk ? "bulk" : NULL, &w->cursor);
	if (error != 0 && w->session != NULL)
		w->session->close(w->session, NULL);
	if (error != 0)
		free(w);
	else
		*out = w;
	return error;
}

int shim_worker_close(shim_worker *w)
{
	int error = w->session->close(w->session, NULL);
	free(w);
	return error;
}

static void set_key(WT_CURSOR *cursor, const void *key, size_t len)
{
	WT_ITEM item = {0};
	item.data = key;
	item.size = len;
	cursor->set_key(cursor, &item);
}

int shim_begin(shim_worker *w)
{
	return w->session->begin_transaction(w->session, NULL);
}

int shim_commit(shim_worker *w)
{
	return w->session->commit_transaction(w->session, NULL);
}

int shim_rollback(shim_worker *w)
{
	return w->session->rollback_transaction(w->session, NULL);
}

/* Makes everything that has been committed durable. */
int shim_sync(shim_worker *w)
{
	return w->session->log_flush(w->session, "sync=on");
}

int shim_checkpoint(shim_worker *w)
{
	return w->session->checkpoint(w->session, NULL);
}

int shim_put(shim_worker *w, const void *key, size_t len, const void *value, size_t value_len)
{
	WT_ITEM item = {0};
	item.data = value;
	item.size = value_len;
	set_key(w->cursor, key, len);
	w->cursor->set_value(w->cursor, &item);
	return w->cursor->insert(w->cursor);
}

int shim_remove(shim_worker *w, const void *key, size_t len)
{
	set_key(w->cursor, key, len);
	return w->cursor->remove(w->cursor);
}

/* The value stays where it is until the cursor moves or is reset. 1: there is no such row. */
int shim_get(shim_worker *w, const void *key, size_t len, const void **value, size_t *value_len)
{
	set_key(w->cursor, key, len);
	int error = w->cursor->search(w->cursor);
	if (error == WT_NOTFOUND)
		return 1;
	WT_ITEM item;
	if (error == 0)
		error = w->cursor->get_value(w->cursor, &item);
	if (error == 0) {
		*value = item.data;
		*value_len = item.size;
	}
	return error;
}

/* Stands on the first row not below the key. 1: there is none. */
int shim_seek(shim_worker *w, const void *key, size_t len)
{
	int exact = 0;
	set_key(w->cursor, key, len);
	int error = w->cursor->search_near(w->cursor, &exact);
	if (error == 0 && exact < 0)
		error = w->cursor->next(w->cursor);
	return error == WT_NOTFOUND ? 1 : error;
}

int shim_next(shim_worker *w)
{
	int error = w->cursor->next(w->cursor);
	return error == WT_NOTFOUND ? 1 : error;
}

int shim_row(shim_worker *w, const void **key, size_t *len, const void **value, size_t *value_len)
{
	WT_ITEM k, v;
	int error = w->cursor->get_key(w->cursor, &k);
	if (error == 0)
		error = w->cursor->get_value(w->cursor, &v);
	if (error == 0) {
		*key = k.data;
		*len = k.size;
		*value = v.data;
		*value_len = v.size;
	}
	return error;
}

int shim_reset(shim_worker *w)
{
	return w->cursor->reset(w->cursor);
}

int shim_is_rollback(int error)
{
	return error == WT_ROLLBACK;
}

const char *shim_error(int error)
{
	return wiredtiger_strerror(error);
}

const char *shim_version(void)
{
	return wiredtiger_version(NULL, NULL, NULL);
}

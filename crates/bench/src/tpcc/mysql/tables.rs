//! The nine tables in SQL (clause 1.3).
use crate::tpcc::rows::Relation;

/// A table and how it is made: its columns in the order of its rows' values, and its keys.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, &'static str)],
    pub(super) keys: &'static str,
}

impl Table {
    /// The statement that makes it, in this engine.
    pub(super) fn create(&self, engine: &str) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let keys = if self.keys.is_empty() { String::new() } else { format!(", {}", self.keys) };
        format!(
            "CREATE TABLE {} ({}{keys}) ENGINE={engine} CHARACTER SET latin1 COLLATE latin1_bin",
            self.name,
            columns.join(", ")
        )
    }

    /// The statement that reads all of it.
    pub(super) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.names(), self.name)
    }

    /// The statement that adds so many rows.
    pub(super) fn insert(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns.len()].join(", "));
        let rows = vec![row.as_str(); rows].join(", ");
        format!("INSERT INTO {} ({}) VALUES {rows}", self.name, self.names())
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// The table of a relation.
pub(super) fn table(relation: Relation) -> &'static Table {
    match relation {
        Relation::Warehouse => &WAREHOUSE,
        Relation::District => &DISTRICT,
        Relation::Customer => &CUSTOMER,
        Relation::History => &HISTORY,
        Relation::NewOrder => &NEW_ORDERS,
        Relation::Order => &ORDERS,
        Relation::OrderLine => &ORDER_LINE,
        Relation::Item => &ITEM,
        Relation::Stock => &STOCK,
    }
}

/// All of them.
pub(super) const TABLES: [&Table; 9] =
    [&WAREHOUSE, &DISTRICT, &CUSTOMER, &HISTORY, &NEW_ORDERS, &ORDERS, &ORDER_LINE, &ITEM, &STOCK];

const SMALL: &str = "SMALLINT UNSIGNED NOT NULL";
const TINY: &str = "TINYINT UNSIGNED NOT NULL";
const INT: &str = "INT UNSIGNED NOT NULL";
const MONEY: &str = "DECIMAL(12,2) NOT NULL";
const RATE: &str = "DECIMAL(4,4) NOT NULL";
const CHAR_2: &str = "CHAR(2) NOT NULL";
const CHAR_9: &str = "CHAR(9) NOT NULL";
const CHAR_24: &str = "CHAR(24) NOT NULL";
const TEXT_10: &str = "VARCHAR(10) NOT NULL";
const TEXT_16: &str = "VARCHAR(16) NOT NULL";
const TEXT_20: &str = "VARCHAR(20) NOT NULL";
const TEXT_24: &str = "VARCHAR(24) NOT NULL";
const TEXT_50: &str = "VARCHAR(50) NOT NULL";

static WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: &[
        ("w_id", SMALL),
        ("w_name", TEXT_10),
        ("w_street_1", TEXT_20),
        ("w_street_2", TEXT_20),
        ("w_city", TEXT_20),
        ("w_state", CHAR_2),
        ("w_zip", CHAR_9),
        ("w_tax", RATE),
        ("w_ytd", MONEY),
    ],
    keys: "PRIMARY KEY (w_id)",
};

static DISTRICT: Table = Table {
    name: "district",
    columns: &[
        ("d_w_id", SMALL),
        ("d_id", TINY),
        ("d_name", TEXT_10),
        ("d_street_1", TEXT_20),
        ("d_street_2", TEXT_20),
        ("d_city", TEXT_20),
        ("d_state", CHAR_2),
        ("d_zip", CHAR_9),
        ("d_tax", RATE),
        ("d_ytd", MONEY),
        ("d_next_o_id", INT),
    ],
    keys: "PRIMARY KEY (d_w_id, d_id)",
};

static CUSTOMER: Table = Table {
    name: "customer",
    columns: &[
        ("c_w_id", SMALL),
        ("c_d_id", TINY),
        ("c_id", SMALL),
        ("c_first", TEXT_16),
        ("c_middle", CHAR_2),
        ("c_last", TEXT_16),
        ("c_street_1", TEXT_20),
        ("c_street_2", TEXT_20),
        ("c_city", TEXT_20),
        ("c_state", CHAR_2),
        ("c_zip", CHAR_9),
        ("c_phone", "CHAR(16) NOT NULL"),
        ("c_since", "DATETIME"),
        ("c_credit", CHAR_2),
        ("c_credit_lim", MONEY),
        ("c_discount", RATE),
        ("c_balance", MONEY),
        ("c_ytd_payment", MONEY),
        ("c_payment_cnt", INT),
        ("c_delivery_cnt", INT),
        ("c_data", "VARCHAR(500) NOT NULL"),
    ],
    keys: "PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first)",
};

static HISTORY: Table = Table {
    name: "history",
    columns: &[
        ("h_c_id", SMALL),
        ("h_c_d_id", TINY),
        ("h_c_w_id", SMALL),
        ("h_d_id", TINY),
        ("h_w_id", SMALL),
        ("h_date", "DATETIME"),
        ("h_amount", "DECIMAL(6,2) NOT NULL"),
        ("h_data", TEXT_24),
    ],
    keys: "",
};

static NEW_ORDERS: Table = Table {
    name: "new_orders",
    columns: &[("no_w_id", SMALL), ("no_d_id", TINY), ("no_o_id", INT)],
    keys: "PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
};

static ORDERS: Table = Table {
    name: "orders",
    columns: &[
        ("o_w_id", SMALL),
        ("o_d_id", TINY),
        ("o_id", INT),
        ("o_c_id", SMALL),
        ("o_entry_d", "DATETIME"),
        ("o_carrier_id", "TINYINT UNSIGNED"),
        ("o_ol_cnt", TINY),
        ("o_all_local", TINY),
    ],
    keys: "PRIMARY KEY (o_w_id, o_d_id, o_id), KEY by_customer (o_w_id, o_d_id, o_c_id, o_id)",
};

static ORDER_LINE: Table = Table {
    name: "order_line",
    columns: &[
        ("ol_w_id", SMALL),
        ("ol_d_id", TINY),
        ("ol_o_id", INT),
        ("ol_number", TINY),
        ("ol_i_id", INT),
        ("ol_supply_w_id", SMALL),
        ("ol_delivery_d", "DATETIME"),
        ("ol_quantity", TINY),
        ("ol_amount", "DECIMAL(6,2) NOT NULL"),
        ("ol_dist_info", CHAR_24),
    ],
    keys: "PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
};

static ITEM: Table = Table {
    name: "item",
    columns: &[
        ("i_id", INT),
        ("i_im_id", SMALL),
        ("i_name", TEXT_24),
        ("i_price", "DECIMAL(5,2) NOT NULL"),
        ("i_data", TEXT_50),
    ],
    keys: "PRIMARY KEY (i_id)",
};

static STOCK: Table = Table {
    name: "stock",
    columns: &[
        ("s_w_id", SMALL),
        ("s_i_id", INT),
        ("s_quantity", "SMALLINT NOT NULL"),
        ("s_dist_01", CHAR_24),
        ("s_dist_02", CHAR_24),
        ("s_dist_03", CHAR_24),
        ("s_dist_04", CHAR_24),
        ("s_dist_05", CHAR_24),
        ("s_dist_06", CHAR_24),
        ("s_dist_07", CHAR_24),
        ("s_dist_08", CHAR_24),
        ("s_dist_09", CHAR_24),
        ("s_dist_10", CHAR_24),
        ("s_ytd", INT),
        ("s_order_cnt", INT),
        ("s_remote_cnt", INT),
        ("s_data", TEXT_50),
    ],
    keys: "PRIMARY KEY (s_w_id, s_i_id)",
};
